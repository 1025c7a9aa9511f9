"""Runs HTTP services in this process until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from moldau.base.clock import Clock
from moldau.base.json_log import event
from moldau.http.asgi import Application, Scope
from moldau.http.server import HttpServer
from moldau.http.settings import HttpSettings

logger = logging.getLogger(__name__)


class Service(Protocol):
    """A service with an HTTP interface. It is served after `start` has returned."""

    @property
    def application(self) -> Application: ...

    async def start(self, urls: Sequence[str]) -> None:
        """Read the state and become ready; `urls` are those of the listeners. `KafkaError` if it cannot."""
        ...

    async def close(self) -> None: ...

    async def failed(self) -> str:
        """Wait until the service cannot continue, and return the reason; usually it never returns."""
        ...


class Hosted(NamedTuple):
    """A service and the settings of its listeners."""

    service: Service
    settings: HttpSettings
    #: Called with the URLs when the service is ready.
    on_ready: Callable[[Sequence[str]], None]
    #: Tells which requests the service authenticates itself, by a signature.
    is_signed: Callable[[Scope], bool] | None = None


async def serve(hosted: Sequence[Hosted], clock: Clock) -> int:
    """Run services until a signal arrives or one of them fails; return the exit code."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    servers = [HttpServer(each.settings, clock) for each in hosted]
    for server in servers:
        server.bind()
    failures = [asyncio.ensure_future(each.service.failed()) for each in hosted]
    stopping = asyncio.ensure_future(stop.wait())
    started: list[Service] = []
    try:
        for each, server in zip(hosted, servers, strict=True):
            started.append(each.service)
            if not await _unless(stopping, each.service.start(server.urls)):
                return 0
            await server.open(each.service.application, each.is_signed)
            each.on_ready(server.urls)
        # The objects of the start-up live until the end; the garbage collector need not traverse them.
        gc.collect()
        gc.freeze()
        await asyncio.wait([stopping, *failures], return_when=asyncio.FIRST_COMPLETED)
        reasons = [each.result() for each in failures if each.done()]
        for reason in reasons:
            logger.error("%s", reason, extra=event("service.failed"))
        return 1 if reasons else 0
    finally:
        await asyncio.gather(*(server.close() for server in servers))
        for service in started:
            await service.close()
        for waiting in (stopping, *failures):
            waiting.cancel()


def run_loop(serving: Awaitable[int]) -> int:
    """Run the event loop of a service."""

    async def main() -> int:
        return await serving

    try:
        import uvloop
    except ImportError:
        return asyncio.run(main())
    return uvloop.run(main())


async def _unless(stopping: asyncio.Future[Any], work: Awaitable[None]) -> bool:
    """Wait for `work`; cancel it and return False if the process has to stop before."""
    task = asyncio.ensure_future(work)
    await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
        return True
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return False
