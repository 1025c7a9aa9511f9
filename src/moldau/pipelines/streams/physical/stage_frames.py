"""A stage as one data frame: reads its origins, applies its chains and its operator, and unites all
outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.source.late_records import OffsetRange, dropped, late_records
from moldau.pipelines.streams.chains.planner import Planner, is_windowed
from moldau.pipelines.streams.chains.program import DEAD_LETTER, Exit
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.physical import native
from moldau.pipelines.streams.physical.aggregates import is_native_aggregate
from moldau.pipelines.streams.physical.chains import Lowered, lower
from moldau.pipelines.streams.physical.native import NativeRows
from moldau.pipelines.streams.physical.operators import OPERATORS
from moldau.pipelines.streams.physical.ports import COLUMNS, LateRule, OperatorContext, Port, Result
from moldau.pipelines.streams.physical.sources import SourceReader, is_global, with_child
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import Repartition, Source, TableSource, is_native
from moldau.pipelines.streams.topology.stages import Chain, Stage
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    Process,
    TableAggregate,
    input_name,
)


@dataclass(frozen=True, slots=True)
class StageFrame:
    """The output of a stage: key, value, headers, timestamp, topic and partition."""

    frame: DataFrame
    output_mode: Literal["append", "update"]
    #: The parts that run in Python: chains by their origins, and the operator.
    python: tuple[str, ...]
    #: The rule by which Spark drops late rows of the operator's inputs.
    late: LateRule | None = None


@dataclass(slots=True)
class StageBuilder:
    """Builds the frames of stages. With `ranges`, it reads offset ranges of topics instead of streams, by the
    labels of the chains that read them."""

    spark: SparkSession
    planner: Planner
    stores: Mapping[str, StoreBuilder]
    bounded: bool = False
    ranges: Mapping[str, OffsetRange] | None = None

    def build(self, stage: Stage) -> StageFrame:
        outputs: list[DataFrame] = []
        python: list[str] = []
        mode: Literal["append", "update"] = "append"
        late = None
        for chain in stage.before:
            lowered = self._lower(chain, self._exits(stage), self._read(chain.origin, ""))
            outputs.append(_written(lowered.frame))
            python += [chain.origin.name] if lowered.python else []
        if stage.operator is not None and stage.after is not None:
            ports = self.ports(stage, stage.operator, outputs)
            result = OPERATORS[type(stage.operator.operation)](stage.operator, ports, self._context(stage))
            mode, late = result.output_mode, result.late
            lowered = self._after(stage, result)
            outputs.append(_written(lowered.frame))
            python += [stage.operator.name] if lowered.python else []
        return StageFrame(reduce(DataFrame.union, outputs), mode, tuple(python), late)

    def ports(self, stage: Stage, operator: Node, outputs: list[DataFrame]) -> list[Port]:
        """Return the operator's inputs. The dead letters of their chains are added to `outputs`."""
        keep_values = self._keeps_values(stage, operator)
        return [
            self._port(number, chains, keep_values, operator, port, outputs)
            for number, (chains, port) in enumerate(zip(stage.ports, operator.ports, strict=True))
        ]

    def _keeps_values(self, stage: Stage, operator: Node) -> bool:
        """Whether a count needs the values of its input, because it may write late records."""
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
        late = self.planner.late_topics(stage)
        return OperatorContext(
            self.planner.settings, serdes.key, serdes.value, stage.final, self.bounded, self.stores, late
        )

    def _read(self, origin: Node, label: str) -> DataFrame:
        return SourceReader(self.spark, self.planner, self.ranges).read(origin, label)

    def _lower(self, chain: Chain, exits: Mapping[Node, Exit], frame: DataFrame) -> Lowered:
        serdes = self.planner.origin_serdes(chain.origin)
        rows = NativeRows(frame, serdes.key, serdes.value)
        operation = chain.origin.operation
        if isinstance(operation, Source | TableSource) and is_native(operation.consumed.timestamp_extractor):
            extractor = operation.consumed.timestamp_extractor
            rows = native.with_timestamps(rows, chain.origin.name, extractor)
        validate = self._validates() or "child" in frame.columns
        return lower(rows, self.planner.program(chain, exits, serdes), validate=validate)

    def _validates(self) -> bool:
        """Whether Python must deserialize every record, to find records that cannot be deserialized."""
        settings = self.planner.settings
        return settings.on_deserialization_error != "fail" or settings.dead_letter_topic is not None

    def _port(
        self,
        number: int,
        chains: Sequence[Chain],
        keep_values: bool,
        operator: Node,
        port: Node,
        outputs: list[DataFrame],
    ) -> Port:
        leaving = self.planner.port_exit(port, operator, 0, keep_values=keep_values)
        if is_global(port):
            serdes = self.planner.origin_serdes(port)
            return Port(self._read(port, ""), serdes.key, serdes.value)
        frames = []
        for position, chain in enumerate(chains):
            frame = self._read(chain.origin, f"{number}.{position}")
            if isinstance(chain.origin.operation, Process):
                frame = with_child(frame)
                if chain.origin is port:
                    own = F.col("child") == input_name(operator, number)
                    frame = frame.filter(F.coalesce(own, F.lit(True)))
            checked = self._validates() and not _is_packed(port, operator)
            if chain.origin is port and not checked and not _extracts(port):
                frames.append(frame.select(*COLUMNS))
                continue
            rows = self._lower(chain, {port: leaving}, frame).frame
            frames.append(rows.filter(F.col("exit") == 0).select(*COLUMNS))
            if self.planner.settings.dead_letter_topic is not None:
                outputs.append(_written(rows.filter(F.col("exit") == DEAD_LETTER)))
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


@dataclass(frozen=True, slots=True)
class LateRows:
    """Finds the late records that Spark has dropped from a batch (see `late_records`). It is called in the
    thread of the query when the batch is written, and returns the rows for the topics of late records."""

    builder: StageBuilder
    stage: Stage
    rule: LateRule

    def __call__(self, spark: SparkSession) -> DataFrame | None:
        late, operator = dropped(self.builder.spark), self.stage.operator
        if late is None or operator is None:
            return None
        batch = replace(self.builder, spark=spark, ranges=late.ranges)
        topics = self.builder.planner.late_topics(self.stage)
        ports = batch.ports(self.stage, operator, [])
        rows = [
            late_records(self.rule(port.frame, late.watermark_ms), topic)
            for port, topic in zip(ports, topics, strict=True)
        ]
        return reduce(DataFrame.union, rows)


def _extracts(node: Node) -> bool:
    operation = node.operation
    return isinstance(operation, Source | TableSource) and operation.consumed.timestamp_extractor is not None


def _is_packed(port: Node, operator: Node) -> bool:
    """Whether the values of an input contain serialized values, which only the operator can read."""
    packed = isinstance(operator.operation, TableAggregate | ForeignKeyJoin)
    return packed and isinstance(port.operation, Repartition)


def _written(rows: DataFrame) -> DataFrame:
    """Return the rows that have a target topic, with the columns of the sink."""
    return rows.filter(F.col("target").isNotNull()).select(
        "key",
        "value",
        "headers",
        "timestamp",
        F.col("target").alias("topic"),
        F.col("target_partition").alias("partition"),
    )
