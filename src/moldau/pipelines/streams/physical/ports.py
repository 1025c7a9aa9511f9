"""The inputs and results of physical operators: frames with the standard columns.

`topic`, `partition` and `offset` identify the record that a row was derived from; `seq` numbers the rows of
one record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.stores import StoreBuilder

COLUMNS = ("key", "value", "timestamp", "headers", "topic", "partition", "offset", "seq")
HEADERS_TYPE = "array<struct<key: string, value: binary>>"
SCHEMA = (
    f"key binary, value binary, timestamp timestamp, headers {HEADERS_TYPE}, "
    "topic string, partition int, offset bigint, seq int"
)

#: Returns the rows of an input that an operator drops at a watermark, in milliseconds.
LateRule = Callable[[DataFrame, int], DataFrame]


@dataclass(frozen=True, slots=True)
class Port:
    """One input of an operator, and its serdes."""

    frame: DataFrame
    key_serde: Serde
    value_serde: Serde


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an operator. With `side_outputs` there is a column `target`: a row that has a target is
    written to that topic unchanged."""

    frame: DataFrame
    output_mode: Literal["append", "update"]
    side_outputs: bool = False
    #: For operators that Spark computes: which rows it drops as late.
    late: LateRule | None = None


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """The part of the application that an operator depends on. The serdes are those of its result."""

    settings: Any
    key_serde: Serde
    value_serde: Serde
    #: Emit only final results, when windows close.
    final: bool = False
    #: The query processes the available records and ends.
    bounded: bool = False
    stores: Mapping[str, StoreBuilder] = field(default_factory=dict)
    #: The topics of late records, one for each input; empty if records are never late.
    late_topics: tuple[str, ...] = ()
