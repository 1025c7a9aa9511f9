"""Runs a node in this process: configuration, event loop, signals and exit code."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping

from moldau.base.clock import SystemClock
from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.base.pool import ThreadPool
from moldau.config.broker.config import BrokerConfig
from moldau.network.connector import OpenConnection
from moldau.network.listener import ListenError
from moldau.quorum.errors import UnusableMetadata
from moldau.server.node import Node
from moldau.server.startup.format import FormatError, FormatOptions, format_storage, is_formatted
from moldau.server.startup.meta_properties import UnusableFolder
from moldau.storage.cleaner.runner import ProcessRunner
from moldau.storage.disk.disk import PosixDisk

logger = logging.getLogger(__name__)

Ports = dict[str, int]
#: Returns the function that opens connections to other nodes on an event loop.
MakeLinks = Callable[[asyncio.AbstractEventLoop], OpenConnection]
_DESCRIPTORS = 65_536

_REFUSALS = (FormatError, ListenError, UnusableFolder, UnusableMetadata, KafkaError)


class StartError(Exception):
    """The node cannot start; the message names the reason and the remedy."""


def run_node(
    properties: Mapping[str, str],
    *,
    on_ready: Callable[[Ports], None] | None = None,
    make_links: MakeLinks | None = None,
) -> int:
    """Run a node until SIGTERM or Ctrl-C; `on_ready` receives the ports of the listeners."""
    if sys.platform == "win32":
        raise StartError("Moldau runs on Linux and macOS; on Windows, start it inside WSL.")
    try:
        config = BrokerConfig.from_properties(properties)
        for warning in config.warnings:
            logger.warning("%s", warning, extra=event("config.warning"))
        return _run_loop(_serve(config, on_ready or (lambda ports: None), make_links))
    except _REFUSALS as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")) from error


def format_if_needed(properties: Mapping[str, str], options: FormatOptions | None = None) -> None:
    """Format the folders of a new node, as `moldau dev` does."""
    try:
        config = BrokerConfig.from_properties(properties)
        disk = PosixDisk()
        if not is_formatted(disk, config):
            format_storage(disk, SystemClock(), random.SystemRandom(), config, options)
    except _REFUSALS as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")) from error


def _run_loop(serving: Coroutine[None, None, int]) -> int:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(serving)
    return uvloop.run(serving)


def _raise_descriptor_limit() -> None:
    """Raise the soft limit of open files up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(
    config: BrokerConfig, on_ready: Callable[[Ports], None], make_links: MakeLinks | None
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _raise_descriptor_limit()
    pool = ThreadPool(config["background.threads"])
    node = Node(
        config,
        clock=SystemClock(),
        randomness=random.SystemRandom(),
        disk=PosixDisk(),
        pool=pool,
        cleaner=ProcessRunner(),
        on_fatal=stop.set,
        open_connection=make_links(loop) if make_links is not None else None,
    )
    try:
        if await _started(node, stop):
            # The objects of the start-up live until the end; the garbage collector need not traverse them.
            gc.collect()
            gc.freeze()
            on_ready(node.ports)
            await stop.wait()
    finally:
        await node.stop()
        pool.close()
    return 1 if node.failed else 0


async def _started(node: Node, stop: asyncio.Event) -> bool:
    """Start the node; return False if it has to stop before it is ready, waiting for controllers."""
    starting = asyncio.create_task(node.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting.done():
        await starting
        return True
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    return False
