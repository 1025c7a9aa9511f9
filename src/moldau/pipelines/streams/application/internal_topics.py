"""The internal topics of an application, with the names, partitions and configs of Kafka Streams.

A task processes one partition of every input, so joined topics must have the same number of partitions. The
user's topics must agree; a repartition topic gets the number of partitions of the topics it is joined with,
or else of the topics it is written from.

Records of repartition topics are deleted when all stages that read them have processed them, as in Kafka
Streams (`purgeable_offsets`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.late_topics import LATE_CONFIG
from moldau.pipelines.source.offsets import EXTRA
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.dsl.windows import SessionWindows, SlidingWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.graph import Node, TableStore
from moldau.pipelines.streams.topology.operations import Repartition, Source, TableSource
from moldau.pipelines.streams.topology.stages import Stage, connected_groups
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    ForeignKeyLookup,
    GlobalTableJoin,
    Process,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    is_stateful,
)

_COMMON = {"message.timestamp.type": "CreateTime"}
REPARTITION_CONFIG = {
    **_COMMON,
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    "retention.ms": "-1",
}


_JOINS = StreamStreamJoin | StreamTableJoin | TableTableJoin | ForeignKeyLookup | ForeignKeyJoin


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partitions: int
    config: Mapping[str, str]
    #: Whether records are deleted once they have been processed.
    is_repartition: bool = False


@dataclass(slots=True)
class Partitions:
    """The number of partitions, and so of tasks, of each node."""

    counts: Mapping[str, int]
    settings: StreamsSettings
    repartitioned: dict[Node, int] = field(default_factory=dict)

    def of(self, node: Node) -> int:
        operation = node.operation
        if isinstance(operation, Source):
            return max(self.counts[topic] for topic in self.topics_of(operation))
        if isinstance(operation, TableSource):
            return self.counts[operation.topic]
        if isinstance(operation, Repartition):
            return operation.partitions or self.repartitioned.get(node) or self._above(node)
        return self._above(node)

    def topics_of(self, source: Source) -> Sequence[str]:
        if source.pattern is None:
            return source.topics
        return [topic for topic in self.counts if re.fullmatch(source.pattern, topic)]

    def _above(self, node: Node) -> int:
        ports = node.ports[:1] if isinstance(node.operation, GlobalTableJoin) else node.ports
        return max(self.of(port) for port in ports)

    def align(self, nodes: Sequence[Node]) -> None:
        """Give all inputs of every join the same number of partitions, across joins that share an input."""
        joins = [node for node in nodes if isinstance(node.operation, _JOINS) or _is_cogroup(node)]
        sides = {join: [root for port in join.ports for root in _roots(port)] for join in joins}
        for members, roots in connected_groups(sides):
            self._align(members[-1], roots)

    def _align(self, join: Node, roots: Sequence[Node]) -> None:
        free = [root for root in roots if _is_free(root)]
        fixed = {root: self.of(root) for root in roots if not _is_free(root)}
        if len(set(fixed.values())) > 1:
            counts = ", ".join(f"{_origin(root)} has {count}" for root, count in fixed.items())
            raise TopologyException(
                f"The topics joined by {join.name} must have the same number of partitions, but {counts}: "
                "repartition one side with repartition(Repartitioned(number_of_partitions=…))"
            )
        wanted = max(fixed.values()) if fixed else max((self.of(root) for root in free), default=0)
        for root in free:
            self.repartitioned[root] = wanted


def _is_cogroup(node: Node) -> bool:
    return isinstance(node.operation, Aggregate) and len(node.ports) > 1


def _roots(node: Node) -> list[Node]:
    """Return the nodes of the topics that a node's rows are read from."""
    if isinstance(node.operation, Source | TableSource | Repartition):
        return [node]
    ports = node.ports[:1] if isinstance(node.operation, GlobalTableJoin) else node.ports
    return [root for port in ports for root in _roots(port)]


def _is_free(node: Node) -> bool:
    return isinstance(node.operation, Repartition) and node.operation.partitions is None


def _origin(node: Node) -> str:
    operation = node.operation
    if isinstance(operation, Source):
        return operation.pattern or ", ".join(operation.topics)
    return operation.topic if isinstance(operation, TableSource | Repartition) else node.name


def internal_topics(
    stages: Sequence[Stage], planner: Planner, partitions: Partitions, stores: Mapping[str, StoreBuilder]
) -> list[InternalTopic]:
    """Return the repartition topics, changelogs and topics of late records of the stages."""
    found: dict[str, InternalTopic] = {}
    for stage in stages:
        for leaf in stage.leaves:
            name = planner.topic_of(leaf)
            if name is not None and name not in found:
                found[name] = _topic(name, leaf, partitions)
        if stage.operator is not None:
            for name in planner.late_topics(stage):
                found[name] = InternalTopic(name, partitions.of(stage.operator), LATE_CONFIG)
            for topic in _process_stores(stage.operator, planner.settings, partitions, stores):
                found[topic.name] = topic
    return list(found.values())


def _topic(name: str, leaf: Node, partitions: Partitions) -> InternalTopic:
    is_cut = leaf.store is None or leaf.store.name not in name
    if isinstance(leaf.operation, Repartition) or (is_stateful(leaf) and is_cut):
        return InternalTopic(name, partitions.of(leaf), REPARTITION_CONFIG, is_repartition=True)
    config = changelog_config(leaf.store, partitions.settings) if leaf.store is not None else {}
    return InternalTopic(name, partitions.of(leaf), config)


def changelog_config(store: TableStore, settings: StreamsSettings) -> dict[str, str]:
    if store.kind == "key-value":
        return {**_COMMON, "cleanup.policy": "compact", **store.topic_config}
    retention = (store.retention_ms or _retention(store)) + settings.window_retention_ms
    windowed = {"cleanup.policy": "compact,delete", "retention.ms": str(retention)}
    return {**_COMMON, **windowed, **store.topic_config}


def _retention(store: TableStore) -> int:
    windows = store.windows
    if windows is None:
        return 0
    if isinstance(windows, SessionWindows):
        return windows.gap_ms + windows.grace_ms
    if isinstance(windows, SlidingWindows):
        return 2 * windows.time_difference_ms + windows.grace_ms
    return windows.size_ms + windows.grace_ms


def _process_stores(
    operator: Node, settings: StreamsSettings, partitions: Partitions, stores: Mapping[str, StoreBuilder]
) -> list[InternalTopic]:
    """Return the changelogs of the stores that a processor uses."""
    operation, made = operator.operation, []
    for name in operation.store_names if isinstance(operation, Process) else ():
        store = stores.get(name)
        if store is None or not store.logging:
            continue
        config = {**_COMMON, "cleanup.policy": "compact"}
        if store.kind != "key-value":
            retention = str(store.retention_ms + settings.window_retention_ms)
            config |= {"cleanup.policy": "compact,delete", "retention.ms": retention}
        made.append(InternalTopic(settings.internal(f"{name}-changelog"), partitions.of(operator), config))
    return made


def purgeable_offsets(
    progress: Iterable[Mapping[str, Any]], readers: Mapping[str, int]
) -> dict[TopicPartition, int]:
    """Return the offsets before which records can be deleted, given the last progress of every query and the
    number of queries that read each topic. Spark may repeat its last batch, so records are kept from the
    start of that batch. A topic is left alone until all its readers have completed their first batch."""
    found: dict[TopicPartition, int] = {}
    reported: Counter[str] = Counter()
    for each in progress:
        starts = [_offsets(source.get("startOffset")) for source in each.get("sources", ())]
        if not all(starts):
            continue
        reported.update({topic for start in starts for topic in start})
        for topic, partitions in (pair for start in starts for pair in start.items()):
            for partition, offset in partitions.items():
                place = TopicPartition(topic, int(partition))
                found[place] = min(int(offset), found.get(place, int(offset)))
    read = {topic for topic, number in readers.items() if reported[topic] >= number}
    return {place: offset for place, offset in found.items() if place.topic in read and offset > 0}


def _offsets(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """Parse the offsets of a progress, which are JSON text or parsed JSON; empty before the first batch."""
    offsets = json.loads(given) if isinstance(given, str) else given
    if not isinstance(offsets, Mapping):
        return {}
    return {topic: each for topic, each in offsets.items() if topic != EXTRA and isinstance(each, Mapping)}
