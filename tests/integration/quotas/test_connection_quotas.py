"""Limits on the number and the creation of connections, changed while the node runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from moldau.protocol.messages.metadata import MetadataRequest
from tests.harness.nodes.node import connected, running_node
from tests.harness.tools import Tools
from tests.harness.waiting import eventually
from tests.harness.wire.requests import METADATA_VERSION
from tests.harness.wire.wire import Wire
from tests.integration.conftest import Node, new_node

METADATA = MetadataRequest(topics=[])
#: An idle client may create the connections of one second at once.
CONFIG = {"quota.window.num": 2}


@pytest.fixture
def node() -> Iterator[Node]:
    with new_node(config=CONFIG) as cluster:
        yield cluster


def connect(node: Node, stack: ExitStack, count: int) -> list[Wire]:
    return [stack.enter_context(Wire(node.bootstrap_servers)) for _ in range(count)]


def is_served(wire: Wire) -> bool:
    try:
        wire.call(METADATA, METADATA_VERSION)
    except (ConnectionError, BrokenPipeError):
        return False
    return True


def test_address_over_its_creation_rate_is_held_and_then_closed(node: Node) -> None:
    ip = ("--entity-type", "ips", "--entity-default", "--alter")
    Tools(node.bootstrap_servers).good("kafka-configs", *ip, "--add-config", "connection_creation_rate=5")
    eventually(lambda: _refused(node, 10), timeout=20, what="a connection is closed")
    with ExitStack() as stack:
        begin = time.monotonic()
        closed = [wire for wire in connect(node, stack, 12) if not is_served(wire)]
        assert closed
        assert time.monotonic() - begin > 0.1, "not closed at once"
        assert time.monotonic() - begin < 12


def _refused(node: Node, count: int) -> bool:
    with ExitStack() as stack:
        served = [is_served(wire) for wire in connect(node, stack, count)]
        return not all(served)


def test_creation_rate_of_a_listener_makes_connections_wait(node: Node) -> None:
    brokers = ("--entity-type", "brokers", "--entity-default", "--alter")
    rate = "listener.name.plaintext.max.connection.creation.rate=10"
    Tools(node.bootstrap_servers).good("kafka-configs", *brokers, "--add-config", rate)
    with ExitStack() as stack:
        begin = time.monotonic()
        wires = connect(node, stack, 40)
        assert all(is_served(wire) for wire in wires)
        # After the connections of one second, ten each second; the burst may be used partly by the tool.
        assert 1.5 < time.monotonic() - begin < 8


def test_max_connections_of_a_listener_is_raised_while_a_connection_waits(node: Node) -> None:
    tools = Tools(node.bootstrap_servers)
    brokers = ("--entity-type", "brokers", "--entity-default", "--alter", "--add-config")
    with ExitStack() as stack:
        first = connect(node, stack, 3)
        assert all(map(is_served, first))
        tools.good("kafka-configs", *brokers, "listener.name.plaintext.max.connections=5")
        second = connect(node, stack, 2)
        assert all(map(is_served, second))
        (waiting,) = connect(node, stack, 1)
        waiting.post(METADATA, METADATA_VERSION)
        assert waiting.is_silent_for(0.3)
        first[0].close()
        assert not waiting.is_silent_for(10)


def test_broker_is_served_although_clients_use_all_connections(tmp_path: Path) -> None:
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "max.connections": "2",
    }

    async def scenario() -> None:
        async with running_node(tmp_path, config) as node, AsyncExitStack() as stack:
            idle, busy = [await stack.enter_async_context(connected(node)) for _ in range(2)]
            for client in (idle, busy):
                await client.call(METADATA, METADATA_VERSION)
            broker = await stack.enter_async_context(connected(node, "INTERNAL"))
            await broker.call(METADATA, METADATA_VERSION)
            async with asyncio.timeout(10):
                while not idle.closed:
                    await asyncio.sleep(0.005)
            await busy.call(METADATA, METADATA_VERSION)
            assert len(node.limits.open) == 2

    asyncio.run(scenario())
