"""What a SELECT becomes: Spark SQL over views, and what is to be known for running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.parse.statements import SourceKind, Window

#: Columns of a result beside those that were selected: the time of the record, whether a row of a table is
#: there (otherwise it is deleted), the bounds of its window.
RESULT_TIME = "__time"
KEEP = "__keep"
WINDOW_START = "__window_start"
WINDOW_END = "__window_end"
#: Of views of tables: whether the record is a tombstone.
DELETED = "__deleted"
#: Of views that are read for late records: the record as it is.
RECORD = "__record"

#: `persist` writes to a topic, `push` shows changes as they come, `pull` what is there now.
Purpose = Literal["persist", "push", "pull"]
#: How a source is read: as a stream of records, or as what is there now (of a table: its rows).
Reading = Literal["stream", "now"]
#: `recompute`: when a source has changed, the whole result is computed and what is new is written.
Running = Literal["append", "update", "recompute", "batch"]


@dataclass(frozen=True, slots=True)
class Input:
    view: str
    source: Source
    reading: Reading
    #: How late records may be; None if nothing depends on it.
    watermark_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """The records of an input that may come too late: Spark SQL that gives `RECORD` and `TIME` of all, the
    views it needs, and the window they are too late for, or None for a join."""

    sql: str
    views: tuple[str, ...]
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    kind: SourceKind
    inputs: tuple[Input, ...]
    sql: str
    columns: tuple[OutputColumn, ...]
    running: Running
    window: Window | None = None
    limit: int | None = None
    #: Of each input that records may be too late in.
    late: tuple[Late, ...] = ()

    @property
    def key_columns(self) -> list[str]:
        return [column.name for column in self.columns if column.is_key]

    @property
    def value_columns(self) -> list[str]:
        return [column.name for column in self.columns if not column.is_key]
