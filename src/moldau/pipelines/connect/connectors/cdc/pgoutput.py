"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1. Pure: bytes to values.

Values are the text that the type's output function makes; `UNCHANGED` is a stored-out-of-line value that an
update did not change, which the server does not send.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final

from moldau.pipelines.connect.data.errors import ConnectError

#: Microseconds between 1970 and PostgreSQL's epoch, 2000-01-01.
POSTGRES_EPOCH_US: Final = 946_684_800_000_000


class _Unchanged(Enum):
    UNCHANGED = "unchanged"


UNCHANGED: Final = _Unchanged.UNCHANGED
Cell = str | _Unchanged | None
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type_oid: int
    modifier: int
    #: Part of the replica identity.
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    oid: int
    schema: str
    table: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    commit_time_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    end_lsn: int


@dataclass(frozen=True, slots=True)
class Insert:
    relation: int
    new: Row


@dataclass(frozen=True, slots=True)
class Update:
    relation: int
    #: The old row, or its key if `old_is_key`; None if the replica identity did not change.
    old: Row | None
    old_is_key: bool
    new: Row


@dataclass(frozen=True, slots=True)
class Delete:
    relation: int
    old: Row
    old_is_key: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]


Change = Insert | Update | Delete | Truncate
Message = Begin | Commit | Relation | Change | None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found, self._at = self._data[self._at : end].decode(), end + 1
        return found

    def char(self) -> str:
        return chr(self.take("!B"))

    def row(self) -> Row:
        return tuple(self._cell() for _ in range(self.take("!h")))

    def _cell(self) -> Cell:
        kind = self.char()
        if kind == "n":
            return None
        if kind == "u":
            return UNCHANGED
        size = self.take("!i")
        found = self._data[self._at : self._at + size].decode()
        self._at += size
        return found


def decode(data: bytes) -> Message:
    """Return a message; None for kinds that carry no change (types, origins, logical messages)."""
    reader = _Reader(data)
    kind = reader.char()
    if kind == "B":
        reader.take("!q")
        return Begin(reader.take("!q") + POSTGRES_EPOCH_US, reader.take("!I"))
    if kind == "C":
        reader.take("!B"), reader.take("!q")
        return Commit(reader.take("!q"))
    if kind == "R":
        return _relation(reader)
    if kind == "I":
        relation = reader.take("!I")
        reader.char()
        return Insert(relation, reader.row())
    if kind == "U":
        return _update(reader)
    if kind == "D":
        relation = reader.take("!I")
        is_key = reader.char() == "K"
        return Delete(relation, reader.row(), is_key)
    if kind == "T":
        count = reader.take("!i")
        reader.take("!B")
        return Truncate(tuple(reader.take("!I") for _ in range(count)))
    if kind in "YOM":
        return None
    raise ConnectError(f"Unknown message of pgoutput: {kind!r}")


def _relation(reader: _Reader) -> Relation:
    oid, schema, table = reader.take("!I"), reader.text(), reader.text()
    reader.take("!B")
    columns = []
    for _ in range(reader.take("!h")):
        is_key = bool(reader.take("!B") & 1)
        name, type_oid, modifier = reader.text(), reader.take("!I"), reader.take("!i")
        columns.append(RelationColumn(name, type_oid, modifier, is_key))
    return Relation(oid, schema or "pg_catalog", table, tuple(columns))


def _update(reader: _Reader) -> Update:
    relation, kind, old, is_key = reader.take("!I"), reader.char(), None, False
    if kind in "KO":
        old, is_key = reader.row(), kind == "K"
        reader.char()
    return Update(relation, old, is_key, reader.row())
