"""The channel between a worker and its tasks in other processes: lines of JSON over TCP.

A task connects with its ticket, a random secret that it got when it was started, and receives its spec. Then the
worker sends commands, and the task reports and questions. A task whose connection breaks has lost its worker and
stops; a worker whose connection breaks has lost the task. Secrets pass only over this channel, never through
Spark's own data.

| direction | message |
|---|---|
| task → worker | `{"ticket": T}`, `{"event": NAME, "detail": TEXT}`, `{"offsets": […], "id": N}`, `{"store": […], "id": N}` |
| worker → task | `{"spec": {…}}`, `{"command": "pause"}`, `resume`, `stop`, `cancel`, `{"answer": …, "id": N}`, `{"error": TEXT, "passes": BOOL, "id": N}` |
"""  # noqa: E501 - a table

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import secrets
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.storage.types import Record
from moldau.pipelines.connect.worker.hosting.host import Offsets, OnEvent, cancelled
from moldau.pipelines.connect.worker.retries import may_pass
from moldau.pipelines.connect.worker.task.control import Control, Event
from moldau.pipelines.connect.worker.task.spec import TaskSpec

logger = logging.getLogger(__name__)

_MAX_LINE: Final = 64 << 20
_TICKET_TIMEOUT_S: Final = 10.0
_CONNECT_TIMEOUT_S: Final = 30.0
_QUESTION_TIMEOUT_S: Final = 120.0


class Remote:
    """A task in another process, as the worker sees it."""

    def __init__(self, spec: TaskSpec, on_event: OnEvent) -> None:
        self.spec = spec
        self.on_event = on_event
        self.ticket = secrets.token_urlsafe(24)
        self.ended = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._paused = spec.paused
        self._stopping = False
        self.cancelled = False
        self._reported_end = False

    def pause(self, paused: bool) -> None:
        self._paused = paused
        self._send({"command": "pause" if paused else "resume"})

    def stop(self) -> None:
        self._stopping = True
        self._send({"command": "stop"})

    def cancel(self) -> None:
        """Refuse what the task stores from now on: it did not stop in time."""
        self.cancelled = True
        self._send({"command": "cancel"})

    def connected(self, writer: asyncio.StreamWriter) -> None:
        """Send the spec, and the commands that were given before the task was connected."""
        self._writer = writer
        self._send({"spec": self.spec.to_json()})
        if self._paused != self.spec.paused:
            self.pause(self._paused)
        if self._stopping:
            self.stop()

    def event(self, event: Event, detail: str | None) -> None:
        self._reported_end = self._reported_end or event in (Event.FAILED, Event.STOPPED)
        self.on_event(event, detail)

    def lost(self, reason: str) -> None:
        """The connection, or the process, has ended; report it unless the task has ended before."""
        if self.ended.is_set():
            return
        self.ended.set()
        self._writer = None
        if not self._reported_end:
            self.on_event(None, reason)

    def answer(self, value: dict[str, Any]) -> None:
        self._send(value)

    def _send(self, value: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(value).encode() + b"\n")


class ChannelServer:
    """The worker's side: accepts the connections of its tasks."""

    def __init__(self, offsets: Offsets, host: str) -> None:
        self._offsets = offsets
        self._host = host
        self._waiting: dict[str, Remote] = {}
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        if self._server is None:
            raise RuntimeError("The channel is not open.")
        port: int = self._server.sockets[0].getsockname()[1]
        return self._host, port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, limit=_MAX_LINE)

    def expect(self, remote: Remote) -> None:
        self._waiting[remote.ticket] = remote

    def forget(self, remote: Remote) -> None:
        self._waiting.pop(remote.ticket, None)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        remote = await self._admit(reader)
        if remote is None:
            writer.close()
            return
        remote.connected(writer)
        try:
            while line := await reader.readline():
                await self._handle(remote, json.loads(line))
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            logger.warning("The connection of task %s broke: %s", remote.spec.id, error)
        finally:
            remote.lost("The process of the task has ended.")
            writer.close()

    async def _admit(self, reader: asyncio.StreamReader) -> Remote | None:
        try:
            line = await asyncio.wait_for(reader.readline(), _TICKET_TIMEOUT_S)
            ticket = json.loads(line)["ticket"]
        except (OSError, ValueError, KeyError, TypeError, TimeoutError):
            return None
        return self._waiting.pop(ticket, None) if isinstance(ticket, str) else None

    async def _handle(self, remote: Remote, message: dict[str, Any]) -> None:
        if "event" in message:
            remote.event(Event(message["event"]), message.get("detail"))
            return
        number = message["id"]
        try:
            remote.answer({"id": number, "answer": await self._reply(remote, message)})
        except (ConnectError, KafkaError, OSError, TimeoutError) as error:
            remote.answer({"id": number, "error": str(error), "passes": may_pass(error)})

    async def _reply(self, remote: Remote, message: dict[str, Any]) -> Any:
        if "offsets" in message:
            return await self._offsets.read_offsets(remote.spec.connector, message["offsets"])
        if remote.cancelled:
            raise cancelled()
        await self._offsets.append_offsets([_record(each) for each in message["store"]])
        return None


def _record(value: Sequence[str | None]) -> Record:
    key, data = value
    return base64.b64decode(key or ""), None if data is None else base64.b64decode(data)


@dataclass(slots=True)
class _Question:
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Any = None
    error: ConnectError | None = None


class ChannelLink:
    """The task's side; implements `Link`."""

    def __init__(self, address: tuple[str, int], ticket: str) -> None:
        """Connect and receive the spec; `ConnectError` if the worker has ended or forgotten the task."""
        self._lock = threading.Lock()
        self._questions: dict[int, _Question] = {}
        self._next = 0
        try:
            self._socket = socket.create_connection(address, _CONNECT_TIMEOUT_S)
            self._socket.settimeout(None)
            self._lines = self._socket.makefile("rb")
            self._send({"ticket": ticket})
            first = self._lines.readline(_MAX_LINE)
        except OSError as error:
            raise ConnectError(f"The worker cannot be reached: {error}") from error
        if not first:
            raise ConnectError("The worker does not expect this task any more.")
        self.spec = TaskSpec.from_json(json.loads(first)["spec"])

    def follow(self, control: Control) -> None:
        """Pass the worker's commands to the task, in a thread, until the connection ends."""
        threading.Thread(target=self._follow, args=(control,), name="channel", daemon=True).start()

    def report(self, event: Event, detail: str | None = None) -> None:
        # Without connection nothing can be reported; `_follow` stops the task.
        with contextlib.suppress(OSError):
            self._send({"event": event.value, "detail": detail})

    def offsets(self, partitions: Sequence[Any]) -> list[dict[str, Any] | None]:
        found: list[dict[str, Any] | None] = self._ask({"offsets": list(partitions)})
        return found

    def store_offsets(self, records: Sequence[Record]) -> None:
        self._ask({"store": [_encoded(each) for each in records]})

    def close(self) -> None:
        self._socket.close()

    def _follow(self, control: Control) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := self._lines.readline(_MAX_LINE):
                self._handle(control, json.loads(line))
        control.stop()
        for question in list(self._questions.values()):
            question.error = ConnectError("The worker has ended.")
            question.answered.set()

    def _handle(self, control: Control, message: dict[str, Any]) -> None:
        command = message.get("command")
        if command == "stop":
            control.stop()
        elif command == "cancel":
            control.cancel()
        elif command in ("pause", "resume"):
            control.pause(command == "pause")
        else:
            question = self._questions.pop(message["id"], None)
            if question is not None:
                question.answer = message.get("answer")
                if "error" in message:
                    kind = RetriableError if message["passes"] else ConnectError
                    question.error = kind(message["error"])
                question.answered.set()

    def _ask(self, message: dict[str, Any]) -> Any:
        question = _Question()
        with self._lock:
            number = self._next = self._next + 1
            self._questions[number] = question
        try:
            self._send({**message, "id": number})
        except OSError as error:
            raise ConnectError(f"The worker cannot be reached: {error}") from error
        if not question.answered.wait(_QUESTION_TIMEOUT_S):
            raise RetriableError("The worker did not answer in time.")
        if question.error is not None:
            raise question.error
        return question.answer

    def _send(self, value: dict[str, Any]) -> None:
        with self._lock:
            self._socket.sendall(json.dumps(value).encode() + b"\n")


def _encoded(record: Record) -> list[str | None]:
    key, value = record
    return [base64.b64encode(key).decode(), None if value is None else base64.b64encode(value).decode()]
