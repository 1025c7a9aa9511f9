"""A stage as one data frame that can be written: sources read, chains and operator applied, all outputs
together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.queries import source_format
from moldau.pipelines.source.late_records import LEG_OPTION, OffsetRange
from moldau.pipelines.streams.chains.planner import Planner, store_suffix
from moldau.pipelines.streams.chains.program import CHILD_HEADER, DEAD_LETTER, Exit
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.physical import native
from moldau.pipelines.streams.physical.aggregates import is_native_aggregate
from moldau.pipelines.streams.physical.chains import Lowered, lower
from moldau.pipelines.streams.physical.native import NativeRows
from moldau.pipelines.streams.physical.operators import OPERATORS
from moldau.pipelines.streams.physical.ports import (
    COLUMNS,
    SCHEMA,
    LateRule,
    OperatorContext,
    Port,
    Result,
)
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.late import is_windowed, late_topics
from moldau.pipelines.streams.topology.operations import Repartition, Source, TableSource, is_native
from moldau.pipelines.streams.topology.stages import Leg, Stage
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    Process,
    TableAggregate,
    input_name,
)

_HEADERS = "array<struct<key: string, value: binary>>"


@dataclass(frozen=True, slots=True)
class StageFrame:
    """What a stage writes: key, value, headers, timestamp, topic and partition."""

    frame: DataFrame
    output_mode: Literal["append", "update"]
    #: Which of its parts are Python: legs by their origins, and the operator.
    python: tuple[str, ...]
    #: What Spark drops of the operator's inputs.
    late: LateRule | None = None


@dataclass(slots=True)
class StageBuilder:
    spark: SparkSession
    planner: Planner
    stores: Mapping[str, StoreBuilder]
    bounded: bool = False
    #: Instead of streams, what these parts of the topics hold, by the legs that read them.
    ranges: Mapping[str, OffsetRange] | None = None

    def build(self, stage: Stage) -> StageFrame:
        outputs: list[DataFrame] = []
        python: list[str] = []
        mode: Literal["append", "update"] = "append"
        late = None
        for leg in stage.before:
            lowered = self._leg(leg, self._exits(stage), self._read(leg.origin, ""))
            outputs.append(_written(lowered.frame))
            python += [leg.origin.name] if lowered.python else []
        if stage.operator is not None and stage.after is not None:
            ports = self.ports(stage, stage.operator, outputs)
            result = OPERATORS[type(stage.operator.operation)](stage.operator, ports, self._context(stage))
            mode, late = result.output_mode, result.late
            lowered = self._after(stage, result)
            outputs.append(_written(lowered.frame))
            python += [stage.operator.name] if lowered.python else []
        return StageFrame(reduce(DataFrame.union, outputs), mode, tuple(python), late)

    def ports(self, stage: Stage, operator: Node, outputs: list[DataFrame]) -> list[Port]:
        """The operator's inputs; what leaves on the way to it goes to the outputs."""
        whole = self._needs_values(stage, operator)
        return [
            self._port(number, legs, whole, operator, port, outputs)
            for number, (legs, port) in enumerate(zip(stage.ports, operator.ports, strict=True))
        ]

    def _needs_values(self, stage: Stage, operator: Node) -> bool:
        """Whether what is only counted may leave for the topic of late records from here."""
        operation = operator.operation
        if self.ranges is not None or not isinstance(operation, Aggregate) or not is_windowed(operator):
            return self.ranges is not None
        result = self.planner.result_serdes(operator).value
        return not is_native_aggregate(operation, result.format, stage.final)

    def _exits(self, stage: Stage) -> dict[Node, Exit]:
        exits = {}
        for number, leaf in enumerate(stage.leaves):
            leaving = self.planner.leaf_exit(leaf, number)
            if leaving is not None:
                exits[leaf] = leaving
        return exits

    def _context(self, stage: Stage) -> OperatorContext:
        if stage.operator is None:
            raise ValueError(f"{stage.name} has no operator")
        serdes = self.planner.result_serdes(stage.operator)
        settings = self.planner.settings
        late = late_topics(stage, settings)
        return OperatorContext(
            settings, serdes.key, serdes.value, stage.final, self.bounded, self.stores, late
        )

    def _leg(self, leg: Leg, exits: Mapping[Node, Exit], frame: DataFrame) -> Lowered:
        serdes = self.planner.origin_serdes(leg.origin)
        rows = NativeRows(frame, serdes.key, serdes.value)
        operation = leg.origin.operation
        if isinstance(operation, Source | TableSource) and is_native(operation.consumed.timestamp_extractor):
            extractor = operation.consumed.timestamp_extractor
            rows = native.with_timestamps(rows, leg.origin.name, extractor)
        validate = self._validates() or "child" in frame.columns
        return lower(rows, self.planner.program(leg, exits, serdes), validate=validate)

    def _validates(self) -> bool:
        """Whether every record has to be decoded, to find those that cannot be."""
        settings = self.planner.settings
        return settings.on_deserialization_error != "fail" or settings.dead_letter_topic is not None

    def _port(
        self,
        number: int,
        legs: Sequence[Leg],
        whole: bool,
        operator: Node,
        port: Node,
        outputs: list[DataFrame],
    ) -> Port:
        leaving = self.planner.port_exit(port, operator, 0, whole=whole)
        if _is_global(port):
            serdes = self.planner.origin_serdes(port)
            return Port(self._read(port, ""), serdes.key, serdes.value)
        frames = []
        for place, leg in enumerate(legs):
            frame = self._read(leg.origin, f"{number}.{place}")
            if isinstance(leg.origin.operation, Process):
                frame = _with_child(frame)
                if leg.origin is port:
                    own = F.col("child") == input_name(operator, number)
                    frame = frame.filter(F.coalesce(own, F.lit(True)))
            checked = self._validates() and not _is_packed(port, operator)
            if leg.origin is port and not checked and not _extracts(port):
                frames.append(frame.select(*COLUMNS))
                continue
            left = self._leg(leg, {port: leaving}, frame).frame
            frames.append(left.filter(F.col("exit") == 0).select(*COLUMNS))
            if self.planner.settings.dead_letter_topic is not None:
                outputs.append(_written(left.filter(F.col("exit") == DEAD_LETTER)))
        serdes = self.planner.port_serdes(port)
        return Port(reduce(DataFrame.union, frames), serdes.key, serdes.value)

    def _after(self, stage: Stage, result: Result) -> Lowered:
        if stage.operator is None or stage.after is None:
            raise ValueError(f"{stage.name} has no operator")
        serdes = self.planner.result_serdes(stage.operator)
        forwards = isinstance(stage.operator.operation, Process)
        added = [*(["target"] if result.side_outputs else []), *(["child"] if forwards else [])]
        frame = result.frame.select(*COLUMNS, *added)
        rows = NativeRows(frame, serdes.key, serdes.value, result.side_outputs)
        program = self.planner.program(stage.after, self._exits(stage), serdes)
        return lower(rows, replace(program, timestamp_extractor=None), validate=forwards)

    def _read(self, origin: Node, leg: str) -> DataFrame:
        operation = origin.operation
        settings = self.planner.settings
        options = {
            "kafka.bootstrap.servers": settings.bootstrap_servers,
            "includeHeaders": "true",
            **{f"kafka.{key}": value for key, value in settings.client.items()},
        }
        own = not isinstance(operation, Source | TableSource)
        suffix = store_suffix(origin.store) if own else b""
        if self.ranges is not None:
            return self._again(self.ranges.get(leg), options, suffix)
        if isinstance(operation, Source) and operation.pattern is not None:
            options["subscribePattern"] = operation.pattern
        elif isinstance(operation, Source):
            options["subscribe"] = ",".join(operation.topics)
        else:
            options["subscribe"] = self.planner.topic_of(origin) or ""
        if _is_global(origin):
            return _standard(self.spark.read.format(source_format(self.spark)).options(**options).load(), b"")
        options["startingOffsets"] = _starting(operation)
        options[LEG_OPTION] = leg
        if settings.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(settings.max_offsets_per_trigger)
        stream = self.spark.readStream.format(source_format(self.spark)).options(**options).load()
        rows = _standard(stream, suffix)
        # A table has no row without a key.
        return rows.filter(F.col("key").isNotNull()) if isinstance(operation, TableSource) else rows

    def _again(self, part: OffsetRange | None, options: Mapping[str, str], suffix: bytes) -> DataFrame:
        if part is None or not part.end:
            return self.spark.createDataFrame([], SCHEMA)
        reader = self.spark.read.format(source_format(self.spark)).options(**options, **part.options())
        return _standard(reader.load(), suffix)


def _starting(operation: object) -> str:
    reset = operation.consumed.offset_reset if isinstance(operation, Source | TableSource) else None
    return reset or "earliest"


def _extracts(node: Node) -> bool:
    operation = node.operation
    return isinstance(operation, Source | TableSource) and operation.consumed.timestamp_extractor is not None


def _is_packed(port: Node, operator: Node) -> bool:
    """Whether an operator's input is a topic with values inside of others, which only it can read."""
    packed = isinstance(operator.operation, TableAggregate | ForeignKeyJoin)
    return packed and isinstance(port.operation, Repartition)


def _is_global(node: Node) -> bool:
    return isinstance(node.operation, TableSource) and node.operation.is_global


def _standard(frame: DataFrame, suffix: bytes) -> DataFrame:
    key = F.col("key")
    if suffix:
        key = F.expr(f"substring(key, 1, length(key) - {len(suffix)})")
    return frame.select(
        key.alias("key"),
        "value",
        "timestamp",
        F.col("headers").cast(_HEADERS).alias("headers"),
        "topic",
        "partition",
        "offset",
        F.lit(0).alias("seq"),
    )


def _with_child(frame: DataFrame) -> DataFrame:
    """What a processor has sent to one operator alone says so in a header."""
    named = F.get(F.filter("headers", lambda each: each["key"] == CHILD_HEADER), F.lit(0))
    rest = F.filter("headers", lambda each: each["key"] != CHILD_HEADER)
    child = named["value"].cast("string")
    return frame.withColumn("child", child).withColumn("headers", rest)


def _written(left: DataFrame) -> DataFrame:
    return left.filter(F.col("target").isNotNull()).select(
        "key",
        "value",
        "headers",
        "timestamp",
        F.col("target").alias("topic"),
        F.col("target_partition").alias("partition"),
    )
