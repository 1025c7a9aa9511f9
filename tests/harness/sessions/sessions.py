"""Recorded sessions: the frames between a client and a broker on all connections.

A session is a file of lines compressed with xz. The first is a JSON object that names client and broker; each
other one is an event, in order: the connection's number, the type (`>` the
client sent a frame, `<` the broker did, `x` the client disconnected), and the frame in base64.
"""

from __future__ import annotations

import asyncio
import json
import lzma
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, NamedTuple

REQUEST, ANSWER, HUNG_UP = ">", "<", "x"
FOLDER = Path(__file__).parents[2] / "data" / "sessions"
SUFFIX = ".session.xz"


class Event(NamedTuple):
    connection: int
    kind: str
    frame: bytes = b""


class Session(NamedTuple):
    about: dict[str, Any]
    events: list[Event]

    def write(self, path: Path) -> None:
        lines = [json.dumps(self.about)]
        lines += [f"{each.connection} {each.kind} {b64encode(each.frame).decode()}" for each in self.events]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9))

    @classmethod
    def read(cls, path: Path) -> Session:
        first, *lines = lzma.decompress(path.read_bytes()).decode().split("\n")
        events = []
        for line in lines:
            connection, kind, frame = line.split(" ")
            events.append(Event(int(connection), kind, b64decode(frame)))
        return cls(json.loads(first), events)


class RecordingProxy:
    """A proxy between clients and one broker, which must advertise the proxy's address."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.events: list[Event] = []
        self._port = port
        self._broker_port = broker_port
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> RecordingProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self._connections
        self._connections += 1
        from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        answers = asyncio.create_task(self._copy(number, ANSWER, from_broker, writer))
        self._tasks.add(answers)
        await self._copy(number, REQUEST, reader, to_broker)
        self.events.append(Event(number, HUNG_UP))
        to_broker.close()
        await answers

    async def _copy(
        self, number: int, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Copy whole frames only; incomplete frames are dropped."""
        try:
            while True:
                prefix = await reader.readexactly(4)
                frame = await reader.readexactly(int.from_bytes(prefix, "big"))
                self.events.append(Event(number, kind, frame))
                writer.write(prefix + frame)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
