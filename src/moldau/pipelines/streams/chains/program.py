"""What a chain is, as plain data that can be sent to workers: its steps, and where rows leave it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.client.records import ConsumerRecord, Headers
from moldau.pipelines.streams.application.settings import Handler
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.topology.operations import Operation

#: The exit of dead letters.
DEAD_LETTER = -1
#: The exit of rows that had a target when they came.
SIDE_OUTPUT = -2
#: The header of a row on its way to one operator behind its processor alone, in a topic between stages.
CHILD_HEADER = "__streams.child"


@dataclass(frozen=True, slots=True)
class Exit:
    """Where rows leave a chain: for a topic, or (without one) for what comes next in the query."""

    number: int
    name: str
    key_serde: Serde | None
    value_serde: Serde | None
    topic: str | None = None
    extractor: Callable[[Any, Any, Any], str] | None = None
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    #: How many partitions the topic has, where a partition is chosen here.
    partitions: int | None = None
    #: Changelogs and cuts stay in the partition that they came from.
    keeps_partition: bool = False
    #: Windowed keys go where their keys alone would go.
    windowed: bool = False
    #: What a window store's changelog has behind its keys.
    key_suffix: bytes = b""
    #: Only whether there is a value counts.
    presence_only: bool = False
    #: Nobody reads the values, so they may stay as they are.
    any_form: bool = False
    #: Rows without a key stay behind.
    needs_key: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    operation: Operation
    #: The numbers of the steps behind it.
    after: tuple[int, ...]
    exits: tuple[Exit, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A chain from one origin."""

    steps: tuple[Step, ...]
    first: tuple[int, ...]
    first_exits: tuple[Exit, ...]
    key_serde: Serde | None
    value_serde: Serde | None
    timestamp_extractor: Callable[[ConsumerRecord[Any, Any], int], int] | None = None
    on_deserialization_error: Handler = "fail"
    on_processing_error: Handler = "fail"
    dead_letter_topic: str | None = None


class Left(NamedTuple):
    """A row that has left a chain."""

    exit: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers
    topic: str | None
    partition: int | None
    offset: int | None
    seq: int
    target: str | None
    target_partition: int | None
