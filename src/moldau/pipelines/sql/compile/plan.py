"""The plan of a SELECT: Spark SQL over views, and how to run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.parse.statements import SourceKind, Window

#: Additional columns of a result: the timestamp of the record, whether a row of a table is kept (otherwise it
#: is deleted), and the bounds of its window.
RESULT_TIME = "__time"
KEEP = "__keep"
WINDOW_START = "__window_start"
WINDOW_END = "__window_end"
#: In views of tables: whether the record is a tombstone.
DELETED = "__deleted"
#: In views that are read for late records: the record itself.
RECORD = "__record"

#: A persistent query writes to a topic, a push query returns changes, a pull query returns the current state.
Purpose = Literal["persist", "push", "pull"]
#: The reading of a source: as a stream of records, or as its current records (for a table, its rows).
Reading = Literal["stream", "now"]
#: `recompute`: when a source changes, the whole result is computed, and the differences are written.
Running = Literal["append", "update", "recompute", "batch"]


@dataclass(frozen=True, slots=True)
class Input:
    view: str
    source: Source
    reading: Reading
    #: The delay of the watermark; None without a watermark.
    watermark_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """The records of an input that may be late: Spark SQL that returns their `RECORD` and `TIME`, the views
    it needs, and the window they may be late for, or None for a join."""

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
    #: One entry for each input that may have late records.
    late: tuple[Late, ...] = ()

    @property
    def key_columns(self) -> list[str]:
        return [column.name for column in self.columns if column.is_key]

    @property
    def value_columns(self) -> list[str]:
        return [column.name for column in self.columns if not column.is_key]
