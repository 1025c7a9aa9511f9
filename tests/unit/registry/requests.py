"""Requests to the application of a registry, without a socket."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.base.clock import SystemClock
from moldau.registry.api.application import RegistryApplication
from moldau.registry.api.metadata import ServerMetadata
from moldau.registry.service import RegistryService
from moldau.registry.state.registry import RegistrySettings
from tests.harness.registry.application import Answer, ask
from tests.unit.registry.memory_log import MemoryLog, SteadyLeader


class TestRegistry:
    __test__ = False

    def __init__(
        self, log: MemoryLog | None = None, leader: SteadyLeader | None = None, **settings: Any
    ) -> None:
        self.log = log or MemoryLog()
        self.leader = leader or SteadyLeader()
        chosen = RegistrySettings(**{"compatibility_level": "NONE", **settings})
        self.service = RegistryService(chosen, self.log, self.leader, SystemClock())
        self.application = RegistryApplication(self.service, ServerMetadata("cluster", "group", "1.0"))

    async def start(self) -> TestRegistry:
        await self.service.start()
        return self

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        return await ask(self.application, method, path, body, headers)

    async def register(self, subject: str, schema: object, **fields: Any) -> Answer:
        body = {"schema": schema if isinstance(schema, str) else json.dumps(schema), **fields}
        return await self.ask("POST", f"/subjects/{subject}/versions", body)


def record(name: str, *fields: str, **defaults: Any) -> dict[str, Any]:
    """An Avro record of strings; those with a default are named by keyword."""
    plain = [{"name": each, "type": "string"} for each in fields]
    with_default = [{"name": key, "type": "string", "default": value} for key, value in defaults.items()]
    return {"type": "record", "name": name, "fields": [*plain, *with_default]}


def on_a_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on an event loop of its own."""

    @functools.wraps(test)
    def run() -> None:
        async def main() -> None:
            await test()

        asyncio.run(main())

    return run
