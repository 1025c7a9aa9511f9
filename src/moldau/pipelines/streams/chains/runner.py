"""Runs the stateless steps of a chain, fused: a record is deserialized once, passed through all steps as
objects, and serialized once.

`Runner` compiles a `Program` to nested functions, each step calling the next, so that a record costs little
more than the user's functions.

A record that cannot be deserialized, or for which a function fails, stops the application with a message that
names the operator and the record. If the exception handler is `continue`, the record is dropped. With a dead
letter queue topic (KIP-1034), its bytes are written there with Kafka's error headers.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from moldau.client.partitioners import partition_for_key
from moldau.client.records import ConsumerRecord, Headers
from moldau.client.serdes import SerializationError
from moldau.pipelines.streams.chains.program import (
    CHILD_HEADER,
    DEAD_LETTER,
    SIDE_OUTPUT,
    Exit,
    OutputRow,
    Program,
    Step,
)
from moldau.pipelines.streams.chains.steps import step_function
from moldau.pipelines.streams.dsl.serdes import inner_serde
from moldau.pipelines.streams.errors import StreamsException, failure
from moldau.pipelines.streams.topology.operations import Branch, child_names


class Current:
    """The record being processed, and the rows emitted so far."""

    __slots__ = ("headers", "key", "offset", "partition", "rows", "seq", "timestamp", "topic", "value")

    def __init__(self) -> None:
        self.rows: list[OutputRow] = []
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.timestamp = 0
        self.headers: Headers = ()
        self.topic: str | None = None
        self.partition: int | None = None
        self.offset: int | None = None
        self.seq = 0

    def where(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


Next = Callable[[Any, Any], None]


class Runner:
    """Runs a program over rows; created once for every Spark task."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.current = Current()
        self._made: dict[int, Next] = {}
        self._first = self._all(program.first, program.first_exits)
        #: The highest timestamp by topic and partition, for timestamp extractors.
        self._highest: dict[tuple[str | None, int | None], int] = {}

    def run(self, rows: Iterable[Sequence[Any]]) -> list[OutputRow]:
        """Process rows of key, value, timestamp, headers, topic, partition, offset, target and child. A row
        with a target is passed through to that topic; a row with a child is processed by that child only."""
        current = self.current
        current.rows = []
        program, first = self.program, self._first
        for key, value, timestamp, headers, topic, partition, offset, target, child in rows:
            current.key, current.value, current.timestamp = key, value, timestamp
            current.headers = headers or ()
            current.topic, current.partition, current.offset = topic, partition, offset
            current.seq = 0
            if target is not None:
                self._emit(SIDE_OUTPUT, key, value, current.headers, target, partition)
                continue
            try:
                decoded_key = key if program.key_serde is None else program.key_serde.deserialize(topic, key)
                decoded = (
                    value if program.value_serde is None else program.value_serde.deserialize(topic, value)
                )
            except SerializationError as error:
                self._undecodable(error)
                continue
            if child is not None:
                self._to_child(child, decoded_key, decoded)
            elif program.timestamp_extractor is None or self._extract(decoded_key, decoded):
                first(decoded_key, decoded)
        return current.rows

    def _to_child(self, name: str, key: Any, value: Any) -> None:
        """Forward a record to the child that the processor named. A header tells children in later stages
        whether the record is theirs."""
        for number in self.program.first:
            if name in child_names(self.program.steps[number].name, self.program.steps[number].operation):
                self._step(number)(key, value)
        headers = self.current.headers
        self.current.headers = [*headers, (CHILD_HEADER, name.encode())]
        for leaving in self.program.first_exits:
            self._exit(leaving)(key, value)
        self.current.headers = headers

    def failed(self, name: str, error: Exception) -> None:
        """Handle an exception of a user's function for the current record."""
        program = self.program
        if program.on_processing_error == "fail":
            raise failure(name, self.current.where(), error) from error
        if program.dead_letter_topic is not None:
            self.dead_letter(error)

    def _undecodable(self, error: SerializationError) -> None:
        program = self.program
        if program.dead_letter_topic is not None:
            self.dead_letter(error)
        if program.on_deserialization_error == "fail" and program.dead_letter_topic is None:
            raise StreamsException(
                f"The record {self.current.where()} cannot be deserialized: {error}. Configure a serde that "
                "matches the data, or set deserialization.exception.handler=continue to skip such records, "
                "or errors.dead.letter.queue.topic.name to keep them"
            ) from error

    def _extract(self, key: Any, value: Any) -> bool:
        """Extract the timestamp. Return whether it is valid: as in Kafka Streams, a record with a negative
        timestamp is dropped."""
        current = self.current
        record = ConsumerRecord(
            current.topic or "",
            current.partition or 0,
            current.offset or 0,
            key,
            value,
            current.timestamp,
            "CreateTime",
            list(current.headers),
        )
        place = (current.topic, current.partition)
        highest = self._highest.get(place, -1)
        extractor = self.program.timestamp_extractor
        if extractor is not None:
            try:
                current.timestamp = extractor(record, highest)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.failed("The timestamp extractor", error)
                return False
        self._highest[place] = max(highest, current.timestamp)
        return current.timestamp >= 0

    def dead_letter(self, error: BaseException) -> None:
        current = self.current
        about = {
            "exception": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": str(error),
            "stacktrace": "".join(traceback.format_exception(error)),
            "topic": str(current.topic),
            "partition": str(current.partition),
            "offset": str(current.offset),
        }
        errors = [(f"__streams.errors.{name}", text.encode()) for name, text in about.items()]
        headers = [*current.headers, *errors]
        self._emit(DEAD_LETTER, current.key, current.value, headers, self.program.dead_letter_topic, None)

    def _emit(
        self,
        number: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        target: str | None,
        target_partition: int | None,
    ) -> None:
        current = self.current
        current.rows.append(
            OutputRow(
                number,
                key,
                value,
                current.timestamp,
                headers,
                current.topic,
                current.partition,
                current.offset,
                current.seq,
                target,
                target_partition,
            )
        )
        current.seq += 1

    def _all(self, after: Sequence[int], exits: Sequence[Exit]) -> Next:
        """Return one function that calls the given exits and steps."""
        nexts = [*(self._exit(each) for each in exits), *(self._step(number) for number in after)]
        if len(nexts) == 1:
            return nexts[0]

        def every(key: Any, value: Any) -> None:
            for each in nexts:
                each(key, value)

        return every

    def _step(self, number: int) -> Next:
        if number not in self._made:
            self._made[number] = step_function(self, self.program.steps[number])
        return self._made[number]

    def after(self, step: Step) -> Next:
        """Return a function that calls everything after a step."""
        return self._all(step.after, step.exits)

    def branches(self, step: Step) -> dict[int | None, Next]:
        """Return the functions of a split's branches, by their positions."""
        found: dict[int | None, Next] = {}
        for number in step.after:
            operation = self.program.steps[number].operation
            if isinstance(operation, Branch):
                found[operation.position] = self._step(number)
        return found

    def _exit(self, leaving: Exit) -> Next:
        """Return a function that serializes and emits a record at an exit."""

        def emit(key: Any, value: Any) -> None:
            if leaving.needs_key and key is None:
                return
            topic = leaving.topic
            try:
                if leaving.extractor is not None:
                    topic = leaving.extractor(key, value, self.current)
                place = self._partition(leaving, topic, key, value)
            except Exception as error:  # noqa: BLE001 - the user's functions may raise anything
                self.failed(leaving.name, error)
                return
            encoded_key, encoded = self._encoded(leaving, topic, key, value)
            self._emit(leaving.number, encoded_key, encoded, self.current.headers, topic, place)

        return emit

    def _encoded(
        self, leaving: Exit, topic: str | None, key: Any, value: Any
    ) -> tuple[bytes | None, bytes | None]:
        name = topic or leaving.name
        try:
            encoded_key = key if leaving.key_serde is None else leaving.key_serde.serialize(name, key)
            if leaving.presence_only:
                encoded: bytes | None = None if value is None else b""
            else:
                encoded = value if leaving.value_serde is None else leaving.value_serde.serialize(name, value)
        except SerializationError as error:
            raise StreamsException(
                f"{leaving.name} cannot serialize its result for {self.current.where()}: {error}. "
                "Configure serdes that match the keys and values that the operators before it return"
            ) from error
        if leaving.key_suffix and encoded_key is not None:
            encoded_key += leaving.key_suffix
        return encoded_key, encoded

    def _partition(self, leaving: Exit, topic: str | None, key: Any, value: Any) -> int | None:
        if leaving.keeps_partition:
            return self.current.partition
        if leaving.partitions is None or topic is None:
            return None
        if leaving.partitioner is not None:
            return leaving.partitioner(topic, key, value, leaving.partitions)
        if leaving.windowed and leaving.key_serde is not None and key is not None:
            inner = inner_serde(leaving.key_serde).serialize(topic, key.key)
            return None if inner is None else partition_for_key(inner, leaving.partitions)
        return None
