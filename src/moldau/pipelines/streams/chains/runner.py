"""Steps without state, fused: a record is decoded once, goes through all steps as objects, is encoded once.

A `Program` is plain data that can be sent to workers. `Runner` makes functions of it, each step calling the
next ones, so that a record costs no more than its functions. Rows that leave are tuples in the order of
`Left`.

What cannot be decoded, and what a function fails on, stops the program with a message that names the
operator and the record, or is dropped if the configuration says `continue`; with a dead letter topic its
bytes go there, with Kafka's headers about the error.
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
    Left,
    Program,
    Step,
)
from moldau.pipelines.streams.dsl.serdes import inner_serde
from moldau.pipelines.streams.errors import StreamsException, failure
from moldau.pipelines.streams.topology.operations import Branch, child_names


class Current:
    """The record that is on its way."""

    __slots__ = ("headers", "key", "offset", "partition", "rows", "seq", "timestamp", "topic", "value")

    def __init__(self) -> None:
        self.rows: list[Left] = []
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
    """Runs a program over rows; made once for every task."""

    def __init__(self, program: Program) -> None:
        from moldau.pipelines.streams.chains.steps import step_function

        self.program = program
        self.current = Current()
        self._step_function = step_function
        self._made: dict[int, Next] = {}
        self._first = self._all(program.first, program.first_exits)
        #: By topic and partition.
        self._highest: dict[tuple[str | None, int | None], int] = {}

    def run(self, rows: Iterable[Sequence[Any]]) -> list[Left]:
        """Rows are key, value, timestamp, headers, topic, partition, offset, target and child: with a target
        they are on their way already, with a child only that step takes them."""
        current = self.current
        current.rows = []
        program, first = self.program, self._first
        for key, value, timestamp, headers, topic, partition, offset, target, child in rows:
            current.key, current.value, current.timestamp = key, value, timestamp
            current.headers = headers or ()
            current.topic, current.partition, current.offset = topic, partition, offset
            current.seq = 0
            if target is not None:
                self._leave(SIDE_OUTPUT, key, value, current.headers, target, partition)
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
        """A processor has named the operator that gets its record. Those that are behind a topic know by a
        header whether it is theirs."""
        for number in self.program.first:
            if name in child_names(self.program.steps[number].name, self.program.steps[number].operation):
                self._step(number)(key, value)
        headers = self.current.headers
        self.current.headers = [*headers, (CHILD_HEADER, name.encode())]
        for leaving in self.program.first_exits:
            self._exit(leaving)(key, value)
        self.current.headers = headers

    def failed(self, name: str, error: Exception) -> None:
        """A function of the user's has failed on the current record."""
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
                f"The record {self.current.where()} cannot be decoded: {error}. It does not fit the serde; "
                "deserialization.exception.handler=continue would skip such records, "
                "errors.dead.letter.queue.topic.name keep them"
            ) from error

    def _extract(self, key: Any, value: Any) -> bool:
        """Whether the record has a time; one with a negative one is left out, as Kafka Streams does."""
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
        told = {
            "exception": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": str(error),
            "stacktrace": "".join(traceback.format_exception(error)),
            "topic": str(current.topic),
            "partition": str(current.partition),
            "offset": str(current.offset),
        }
        about = [(f"__streams.errors.{name}", text.encode()) for name, text in told.items()]
        headers = [*current.headers, *about]
        self._leave(DEAD_LETTER, current.key, current.value, headers, self.program.dead_letter_topic, None)

    def _leave(
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
            Left(
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
        """What calls everything that comes next."""
        nexts = [*(self._exit(each) for each in exits), *(self._step(number) for number in after)]
        if len(nexts) == 1:
            return nexts[0]

        def every(key: Any, value: Any) -> None:
            for each in nexts:
                each(key, value)

        return every

    def _step(self, number: int) -> Next:
        if number not in self._made:
            self._made[number] = self._step_function(self, self.program.steps[number])
        return self._made[number]

    def after(self, step: Step) -> Next:
        """What comes behind a step."""
        return self._all(step.after, step.exits)

    def branches(self, step: Step) -> dict[int | None, Next]:
        """What comes behind a split, by the positions of its branches."""
        found: dict[int | None, Next] = {}
        for number in step.after:
            operation = self.program.steps[number].operation
            if isinstance(operation, Branch):
                found[operation.position] = self._step(number)
        return found

    def _exit(self, leaving: Exit) -> Next:
        """A function that encodes what leaves here."""

        def leave(key: Any, value: Any) -> None:
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
            self._leave(leaving.number, encoded_key, encoded, self.current.headers, topic, place)

        return leave

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
                f"{leaving.name} cannot encode what became of {self.current.where()}: {error}. "
                "The serdes of keys and values must fit what the operators before give"
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
