"""Plans the chains of stages: which serdes read and write their rows, and which topics the rows are written
to.

The serdes are those given in the program, then those of the configuration. Objects that are passed from a
chain to an operator of the same query without a serde are pickled. A row that is written to a topic of the
user needs a serde.

A record that arrives after one of its windows has closed is written to the topic
`<application.id>-<store>-late`, once, however many windows it misses. The store is that of the aggregate or,
for a stream-stream join, that of the record's side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.pipelines.streams.chains.program import Exit, Program, Step
from moldau.pipelines.streams.dsl.serdes import PICKLE, Serde, Serdes, inner_serde, windowed_serde
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.graph import Node, TableStore
from moldau.pipelines.streams.topology.operations import (
    ForEach,
    Print,
    Repartition,
    Sink,
    Source,
    TableSource,
    is_native,
)
from moldau.pipelines.streams.topology.stages import Chain, Stage, final_only_consumers, is_origin
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyLookup,
    ForeignKeySubscribe,
    GlobalTableJoin,
    Process,
    StreamStreamJoin,
    StreamTableJoin,
    TableSelect,
    is_kept,
    is_stateful,
)

#: The changelog keys of a window store end with a sequence number of equal times, which is always zero.
WINDOW_STORE_SUFFIX = b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class KeyValueSerdes:
    """The serdes of keys and values."""

    key: Serde
    value: Serde


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans chains, given the settings and the number of partitions of each topic."""

    settings: StreamsSettings
    partitions: Mapping[str, int]

    def topic_of(self, node: Node) -> str | None:
        """Return the topic that a node's rows are written to or read from; None if there is none."""
        operation = node.operation
        if isinstance(operation, Repartition):
            return self.settings.internal(operation.topic)
        if isinstance(operation, TableSource):
            return operation.topic
        if is_kept(node) and node.store is not None:
            return self.settings.internal(node.store.changelog)
        if is_stateful(node):
            return self.settings.internal(f"{node.name}-repartition")
        return None

    def late_topics(self, stage: Stage) -> tuple[str, ...]:
        """Return the topics of late records: one for each side of a join, one for a windowed aggregate."""
        names: tuple[str, ...] = ()
        operator = stage.operator
        if operator is not None and isinstance(operator.operation, StreamStreamJoin):
            names = (operator.operation.this_store, operator.operation.other_store)
        elif operator is not None and is_windowed(operator):
            names = (_late_store(stage, operator),)
        return tuple(self.settings.internal(f"{name}-late") for name in names)

    def origin_serdes(self, origin: Node) -> KeyValueSerdes:
        """Return the serdes of an origin's rows."""
        operation = origin.operation
        if isinstance(operation, TableSelect | Process) or (is_stateful(origin) and not is_kept(origin)):
            return self.result_serdes(origin)
        if isinstance(operation, Repartition):
            return self._repartition_serdes(origin, operation)
        what = f"the records of {origin.name}"
        key = self._windowed_key(origin) or self._key(origin.key_serde, what)
        return KeyValueSerdes(key, self._value(origin.value_serde, what))

    def result_serdes(self, operator: Node) -> KeyValueSerdes:
        """Return the serdes of an operator's results."""
        operation = operator.operation
        if isinstance(operation, TableSelect):
            what = f"{operator.name} (pass Grouped to group_by)"
            return KeyValueSerdes(
                self._key(operator.key_serde, what), self._value(operator.value_serde, what)
            )
        if isinstance(operation, ForeignKeySubscribe | ForeignKeyLookup):
            return KeyValueSerdes(self.origin_serdes(operator.children[0]).key, Serdes.bytes())
        if isinstance(operation, Process) and not operation.fixed_key:
            return KeyValueSerdes(operator.key_serde or PICKLE, operator.value_serde or PICKLE)
        key = operator.key_serde or self._windowed_key(operator) or self.port_serdes(operator.ports[0]).key
        if is_kept(operator):
            what = f"the table {operator.name} (pass Materialized)"
            return KeyValueSerdes(key, self._value(operator.value_serde, what))
        return KeyValueSerdes(key, operator.value_serde or PICKLE)

    def _windowed_key(self, node: Node) -> Serde | None:
        """Return the serde of a windowed aggregate's keys if the program gives none for its plain keys."""
        operation = node.operation
        if node.key_serde is not None or not isinstance(operation, Aggregate) or operation.windows is None:
            return None
        return windowed_serde(self.port_serdes(node.ports[0]).key, operation.windows)

    def port_serdes(self, port: Node) -> KeyValueSerdes:
        """Return the serdes with which an operator reads an input."""
        if is_origin(port):
            return self.origin_serdes(port)
        key = port.key_serde or self.settings.default_key_serde
        if key is None:
            key = self._key(_inherited_key(port), f"the records of {port.name}")
        return KeyValueSerdes(key, port.value_serde or PICKLE)

    def program(
        self, chain: Chain, exits: Mapping[Node, Exit], origin_serdes: KeyValueSerdes | None
    ) -> Program:
        """Return the program of a chain, given the exits of its leaves."""
        numbers = {node: number for number, node in enumerate(chain.nodes)}
        steps = tuple(
            Step(
                node.name,
                node.operation,
                tuple(numbers[child] for child in node.children if child in numbers),
                (exits[node],) if node in exits else (),
            )
            for node in chain.nodes
        )
        extractor = None
        if isinstance(chain.origin.operation, Source | TableSource):
            extractor = chain.origin.operation.consumed.timestamp_extractor
        settings = self.settings
        return Program(
            steps=steps,
            first=tuple(numbers[child] for child in chain.origin.children if child in numbers),
            first_exits=(exits[chain.origin],) if chain.origin in exits else (),
            key_serde=None if origin_serdes is None else origin_serdes.key,
            value_serde=None if origin_serdes is None else origin_serdes.value,
            timestamp_extractor=None if is_native(extractor) else extractor,
            on_deserialization_error=settings.on_deserialization_error,
            on_processing_error=settings.on_processing_error,
            dead_letter_topic=settings.dead_letter_topic,
        )

    def port_exit(self, port: Node, operator: Node, number: int, *, keep_values: bool) -> Exit:
        """Return the exit to an operator's input. A count needs the values only to write late records."""
        serdes = self.port_serdes(port)
        counts = isinstance(operator.operation, Aggregate) and operator.operation.kind == "count"
        return Exit(
            number,
            port.name,
            serdes.key,
            serdes.value,
            presence_only=counts and not keep_values,
            any_form=counts,
        )

    def leaf_exit(self, leaf: Node, number: int) -> Exit | None:
        """Return the exit of a leaf; None for actions, which emit nothing."""
        operation = leaf.operation
        if isinstance(operation, ForEach | Print):
            return None
        if isinstance(operation, Sink):
            return self._sink(leaf, operation, number)
        if isinstance(operation, Repartition):
            return self._repartition(leaf, operation, number)
        serdes = self.origin_serdes(leaf) if is_stateful(leaf) else self._table_serdes(leaf)
        return Exit(
            number,
            leaf.name,
            serdes.key,
            serdes.value,
            self.topic_of(leaf),
            keeps_partition=True,
            key_suffix=store_suffix(leaf.store),
        )

    def _repartition_serdes(self, node: Node, operation: Repartition) -> KeyValueSerdes:
        what = f"the repartition topic of {node.name} (pass Grouped, Joined or Repartitioned)"
        keys_of, values_of = operation.keys_of, operation.values_of
        return KeyValueSerdes(
            self._key(operation.key_serde, what) if keys_of is None else self.port_serdes(keys_of).key,
            self._value(operation.value_serde, what)
            if values_of is None
            else self.port_serdes(values_of).value,
        )

    def _repartition(self, leaf: Node, operation: Repartition, number: int) -> Exit:
        serdes, topic = self._repartition_serdes(leaf, operation), self.topic_of(leaf)
        # The responses of a foreign-key join contain serialized values, and the partition to write to.
        responds = operation.values_of is not None
        subscribes = operation.keys_of is not None and not responds
        return Exit(
            number,
            leaf.name,
            serdes.key,
            Serdes.bytes() if responds else serdes.value,
            topic,
            partitioner=operation.partitioner,
            partitions=self.partitions.get(topic or ""),
            keeps_partition=responds and operation.partitioner is None,
            windowed=subscribes and inner_serde(serdes.key) is not serdes.key,
            needs_key=operation.filter_name is not None and not _wants_missing_keys(leaf),
        )

    def _table_serdes(self, leaf: Node) -> KeyValueSerdes:
        what = f"the table {leaf.name} (pass Materialized)"
        return KeyValueSerdes(self._key(leaf.key_serde, what), self._value(leaf.value_serde, what))

    def _sink(self, leaf: Node, sink: Sink, number: int) -> Exit:
        what = f"the sink {sink.topic or leaf.name} (pass Produced)"
        key = self._key(sink.key_serde, what)
        return Exit(
            number,
            leaf.name,
            key,
            self._value(sink.value_serde, what),
            sink.topic,
            sink.extractor,
            sink.partitioner,
            None if sink.topic is None else self.partitions.get(sink.topic),
            windowed=inner_serde(key) is not key,
        )

    def _key(self, serde: Serde | None, what: str) -> Serde:
        return _required(serde or self.settings.default_key_serde, "key", what)

    def _value(self, serde: Serde | None, what: str) -> Serde:
        return _required(serde or self.settings.default_value_serde, "value", what)


def is_windowed(operator: Node) -> bool:
    return isinstance(operator.operation, Aggregate) and operator.operation.windows is not None


def _late_store(stage: Stage, aggregate: Node) -> str:
    """Return the name before `-late`: the store, or the stage if the aggregate also runs for a `suppress`."""
    alone = stage.name == aggregate.name or len(final_only_consumers(aggregate)) == 1
    return aggregate.store.name if alone and aggregate.store is not None else stage.name


def store_suffix(store: TableStore | None) -> bytes:
    return WINDOW_STORE_SUFFIX if store is not None and store.kind == "window" else b""


def same_bytes(one: Serde | None, other: Serde | None) -> bool:
    """Whether two serdes have the same serialized form, so that bytes can be copied."""
    if one is other:
        return True
    if one is None or other is None:
        return False
    if one.format is not None and one.format == other.format:
        return True
    inner_one, inner_other = inner_serde(one), inner_serde(other)
    both_windowed = inner_one is not one and inner_other is not other
    return (
        both_windowed
        and type(one.serializer) is type(other.serializer)
        and same_bytes(inner_one, inner_other)
    )


def _wants_missing_keys(node: Node) -> bool:
    """Whether a join downstream has results for records without a key, as left and outer stream joins
    have."""
    joins = StreamStreamJoin | StreamTableJoin | GlobalTableJoin
    return any(
        (isinstance(child.operation, joins) and child.operation.kind != "inner") or _wants_missing_keys(child)
        for child in node.children
    )


def _inherited_key(node: Node) -> Serde | None:
    """Return the key serde of the nearest ancestor whose keys the node still has."""
    while node.key_serde is None and len(node.ports) == 1 and not is_stateful(node):
        node = node.ports[0]
    return node.key_serde


def _required(serde: Serde | None, kind: str, what: str) -> Serde:
    if serde is None:
        raise TopologyException(
            f"No {kind} serde for {what}: specify one, or set default.{kind}.serde in the configuration"
        )
    return serde
