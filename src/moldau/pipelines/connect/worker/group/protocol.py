"""What workers tell each other in the group protocol `connect`: KIP-415, and KIP-507 with session keys.

| message | fields |
|---|---|
| state of a member | version, url, offset of the config topic, its assignment (null if it has none) |
| assignment | version, error, leader, leader's url, offset, assigned, revoked, delay in milliseconds |

Work is a list of connectors with numbers of tasks; number -1 is the connector itself. An assignment names only what
is added and revoked; the rest is kept.
"""  # noqa: E501 - a table

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau.pipelines.connect.storage.types import TaskId

PROTOCOL_TYPE: Final = "connect"
#: By name: the version of its messages, the preferred one first.
PROTOCOLS: Final[Mapping[str, int]] = {"sessioned": 2, "compatible": 1}
NO_ERROR, CONFIG_MISMATCH = 0, 1
_CONNECTOR: Final = -1
_MAX_WORK: Final = 1_000_000


class InvalidState(ValueError):
    """The message of a member is not of this protocol."""


@dataclass(frozen=True, slots=True)
class Work:
    """Connectors and tasks that a worker runs."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()

    def __or__(self, other: Work) -> Work:
        return Work(self.connectors | other.connectors, self.tasks | other.tasks)

    def __sub__(self, other: Work) -> Work:
        return Work(self.connectors - other.connectors, self.tasks - other.tasks)

    def __and__(self, other: Work) -> Work:
        return Work(self.connectors & other.connectors, self.tasks & other.tasks)

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)


@dataclass(frozen=True, slots=True)
class Assignment:
    error: int = NO_ERROR
    leader: str | None = None
    leader_url: str | None = None
    #: The offset of the config topic that a worker must have read.
    offset: int = -1
    assigned: Work = field(default_factory=Work)
    revoked: Work = field(default_factory=Work)
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class MemberState:
    url: str
    offset: int
    owned: Work = field(default_factory=Work)


def encode_state(state: MemberState, leader: str | None, leader_url: str | None, version: int) -> bytes:
    """Return the metadata of a member; its work is written as the assignment that it follows."""
    allocation: bytes | None = None
    if state.owned:
        current = Assignment(leader=leader, leader_url=leader_url, offset=state.offset, assigned=state.owned)
        allocation = encode_assignment(current, version)
    head = struct.pack(">h", version) + _string(state.url) + struct.pack(">q", state.offset)
    if allocation is None:
        return head + struct.pack(">i", -1)
    return head + struct.pack(">i", len(allocation)) + allocation


def decode_state(data: bytes) -> MemberState:
    reader = _Reader(data)
    reader.number(">h")
    url, offset = reader.string() or "", reader.number(">q")
    if reader.at_end:
        return MemberState(url, offset)
    length = reader.number(">i")
    owned = Work() if length < 0 else decode_assignment(reader.take(length)).assigned
    return MemberState(url, offset, owned)


def encode_assignment(assignment: Assignment, version: int) -> bytes:
    return b"".join(
        (
            struct.pack(">hh", version, assignment.error),
            _string(assignment.leader or ""),
            _string(assignment.leader_url or ""),
            struct.pack(">q", assignment.offset),
            _work(assignment.assigned),
            _work(assignment.revoked),
            struct.pack(">i", assignment.delay_ms),
        )
    )


def decode_assignment(data: bytes) -> Assignment:
    reader = _Reader(data)
    reader.number(">h")
    error, leader, url = reader.number(">h"), reader.string(), reader.string()
    offset, assigned = reader.number(">q"), reader.work()
    revoked = Work() if reader.at_end else reader.work()
    delay_ms = 0 if reader.at_end else reader.number(">i")
    return Assignment(error, leader, url, offset, assigned, revoked, delay_ms)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _work(work: Work) -> bytes:
    by_connector: dict[str, list[int]] = {}
    for connector in sorted(work.connectors):
        by_connector.setdefault(connector, []).append(_CONNECTOR)
    for task in sorted(work.tasks):
        by_connector.setdefault(task.connector, []).append(task.task)
    parts = [struct.pack(">i", len(by_connector))]
    for connector, numbers in by_connector.items():
        parts += [_string(connector), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._data)

    def number(self, format: str) -> int:
        (value,) = struct.unpack(format, self.take(struct.calcsize(format)))
        return int(value)

    def string(self) -> str | None:
        length = self.number(">h")
        if length < 0:
            return None
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise InvalidState(str(error)) from None

    def take(self, length: int) -> bytes:
        found = self._data[self._at : self._at + length]
        if len(found) != length:
            raise InvalidState("A message of the group ends early.")
        self._at += length
        return found

    def work(self) -> Work:
        connectors: set[str] = set()
        tasks: set[TaskId] = set()
        for _ in self._times():
            connector = self.string() or ""
            for _ in self._times():
                number = self.number(">i")
                if number == _CONNECTOR:
                    connectors.add(connector)
                else:
                    tasks.add(TaskId(connector, number))
        return Work(frozenset(connectors), frozenset(tasks))

    def _times(self) -> Iterable[int]:
        count = self.number(">i")
        if count > _MAX_WORK:
            raise InvalidState("A message of the group is damaged.")
        return range(count)
