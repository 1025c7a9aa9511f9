"""The program of a chain, as plain data that can be sent to Spark workers: its steps and its exits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.client.records import ConsumerRecord, Headers
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.settings import Handler
from moldau.pipelines.streams.topology.operations import Operation

#: The exit of dead letters.
DEAD_LETTER = -1
#: The exit of rows that an operator has already addressed to a topic.
SIDE_OUTPUT = -2
#: The header, in topics between stages, that names the only child a processor has forwarded the record to.
CHILD_HEADER = "__streams.child"


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a chain: rows go to a topic, or without one to the next operator of the query."""

    number: int
    name: str
    key_serde: Serde | None
    value_serde: Serde | None
    topic: str | None = None
    extractor: Callable[[Any, Any, Any], str] | None = None
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    #: The number of partitions of the topic, where the chain chooses the partition.
    partitions: int | None = None
    #: Write rows to the partition they were read from, as for changelogs.
    keeps_partition: bool = False
    #: Partition windowed keys by the key without its window.
    windowed: bool = False
    #: Appended to every key, as in the changelogs of window stores.
    key_suffix: bytes = b""
    #: Replace every value by empty bytes: only its presence is used.
    presence_only: bool = False
    #: The operator does not read the values, so they need no conversion.
    any_form: bool = False
    #: Drop rows without a key.
    needs_key: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    operation: Operation
    #: The numbers of the steps that follow.
    after: tuple[int, ...]
    exits: tuple[Exit, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The steps and exits of a chain, and the serdes of its origin."""

    steps: tuple[Step, ...]
    first: tuple[int, ...]
    first_exits: tuple[Exit, ...]
    key_serde: Serde | None
    value_serde: Serde | None
    timestamp_extractor: Callable[[ConsumerRecord[Any, Any], int], int] | None = None
    on_deserialization_error: Handler = "fail"
    on_processing_error: Handler = "fail"
    dead_letter_topic: str | None = None


class OutputRow(NamedTuple):
    """A row that a chain emits."""

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
