"""The consumers of streaming reads: bounded in number, found by group for commits, closed after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from moldau.rest.engine.consumer import OnEnd, PolledConsumer
from moldau.rest.engine.instances import Instances
from moldau.rest.request import Request

_DEFAULTS: Final[Mapping[str, Any]] = {"enable.auto.commit": False, "enable.partition.eof": True}


class Streams:
    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        #: The user and the group of each consumer; no group for reads of a topic.
        self._open: dict[PolledConsumer, tuple[Hashable, str | None]] = {}
        self._closing: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def consumer(
        self, request: Request, properties: Mapping[str, Any], on_end: OnEnd | None = None
    ) -> AsyncIterator[PolledConsumer]:
        """A consumer for the time of a request; `ApiError` 503 if there are too many."""
        group = properties.get("group.id")
        wanted = {**request.clients.consumer_properties(), **_DEFAULTS, **properties}
        # librdkafka needs a group even for consumers that never join one.
        wanted.setdefault("group.id", "moldau-rest")
        with self._instances.reserve():
            consumer = PolledConsumer(wanted, self._instances.pool, on_end)
            self._open[consumer] = (request.owner, group)
            try:
                yield consumer
            finally:
                del self._open[consumer]
                # The request may be cancelled; its consumer leaves the group nevertheless.
                task = asyncio.ensure_future(consumer.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    def members(self, owner: Hashable, group: str) -> list[PolledConsumer]:
        """Return the consumers of a user that are members of a group."""
        return [each for each, of in self._open.items() if of == (owner, group)]

    async def close(self) -> None:
        await asyncio.gather(*self._closing, return_exceptions=True)
