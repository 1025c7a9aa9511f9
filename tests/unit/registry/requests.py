"""Requests to the application of a registry, without a socket."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from moldau.base.clock import SystemClock
from moldau.http.asgi import Message
from moldau.registry.api.application import RegistryApplication
from moldau.registry.api.metadata import ServerMetadata
from moldau.registry.service import RegistryService
from moldau.registry.state.registry import RegistrySettings
from tests.unit.registry.memory_log import MemoryLog, SteadyLeader


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[bytes, bytes]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class TestRegistry:
    __test__ = False

    def __init__(self, log: MemoryLog | None = None, **settings: Any) -> None:
        self.log = log or MemoryLog()
        self.leader = SteadyLeader()
        chosen = RegistrySettings(**{"compatibility_level": "NONE", **settings})
        self.service = RegistryService(chosen, self.log, self.leader, SystemClock())
        self.application = RegistryApplication(self.service, ServerMetadata("cluster", "group", "1.0"))

    async def start(self) -> TestRegistry:
        await self.service.start()
        return self

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        started: list[Message] = []
        parts: list[bytes] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": data}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
            else:
                parts.append(message["body"])

        raw, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
        }
        await self.application(scope, receive, send)
        return Answer(started[0]["status"], b"".join(parts), dict(started[0]["headers"]))

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
