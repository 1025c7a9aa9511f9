"""What goes into a physical operator and what comes out: frames with the standard columns.

`topic`, `partition` and `offset` say which record a row comes from, and `seq` counts the rows of one record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.stores import StoreBuilder

COLUMNS = ("key", "value", "timestamp", "headers", "topic", "partition", "offset", "seq")
SCHEMA = (
    "key binary, value binary, timestamp timestamp, headers array<struct<key: string, value: binary>>, "
    "topic string, partition int, offset bigint, seq int"
)


#: Which rows of an input an operator drops at a watermark, in milliseconds.
LateRule = Callable[[DataFrame, int], DataFrame]


@dataclass(frozen=True, slots=True)
class Port:
    """One input of an operator, and how its bytes are read."""

    frame: DataFrame
    key_serde: Serde
    value_serde: Serde


@dataclass(frozen=True, slots=True)
class Result:
    """`side_outputs` says that there is a column `target`: a row that has one goes to that topic as it is."""

    frame: DataFrame
    output_mode: Literal["append", "update"]
    side_outputs: bool = False
    #: Of an operator that Spark runs, which drops what is late.
    late: LateRule | None = None


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """What an operator is told about its program; the serdes are those of its result."""

    settings: Any
    key_serde: Serde
    value_serde: Serde
    #: Only what is final goes on: a window's result when it closes.
    final: bool = False
    #: The query ends with the data that is there.
    bounded: bool = False
    stores: Mapping[str, StoreBuilder] = field(default_factory=dict)
    #: Where records go that come too late, for each input; empty if none ever does.
    late_topics: tuple[str, ...] = ()
