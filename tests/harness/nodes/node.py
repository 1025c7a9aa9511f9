"""A node in the event loop of the test, so that a test can inspect it and break its disk."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from moldau.base.clock import Clock, SystemClock
from moldau.base.pool import Pool, ThreadPool
from moldau.config.broker.config import BrokerConfig
from moldau.network.client import NodeConnection
from moldau.server.node import Node
from moldau.server.startup.format import FormatOptions, format_storage
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import Disk, PosixDisk


@asynccontextmanager
async def running_node(
    folder: Path,
    config: Mapping[str, str] | None = None,
    disk: Disk | None = None,
    *,
    clock: Clock | None = None,
    pool: Pool | None = None,
) -> AsyncIterator[Node]:
    """Format, start and finally stop a node; `folder` may contain the data of an earlier run."""
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "log.dirs": str(folder / "logs"),
        **(config or {}),
    }
    settings = BrokerConfig.from_properties(properties)
    format_storage(
        PosixDisk(), SystemClock(), random.Random(1), settings, FormatOptions(ignore_formatted=True)
    )
    pool = pool or ThreadPool(2)
    node = Node(
        settings,
        clock=clock or SystemClock(),
        randomness=random.Random(2),
        disk=disk or PosixDisk(),
        pool=pool,
        cleaner=InlineRunner(disk or PosixDisk()),
        on_fatal=lambda: None,
    )
    try:
        await node.start()
        yield node
    finally:
        await node.stop()
        pool.close()


@asynccontextmanager
async def connected(node: Node, listener: str = "PLAINTEXT") -> AsyncIterator[NodeConnection]:
    connection = await NodeConnection.connect("127.0.0.1", node.ports[listener])
    try:
        yield connection
    finally:
        connection.close()
