"""The output of `kafka-topics --describe`, and its filters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.ids import ZERO_UUID, TopicPartition, format_uuid
from moldau.cli.shared.arguments import given
from moldau.cli.shared.tiers import TierOffsets, is_tiered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from moldau.client.admin.configs import ConfigEntry
    from moldau.client.admin.topic_types import PartitionDescription, Reassignment, TopicDescription

#: Options that select partitions.
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


class TopicReport:
    """Prints the topics and partitions that the options select.

    `tiers` returns the offsets of both tiers, which are added to the lines of tiered topics only: all others
    are printed as by Apache Kafka.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        reassignments: dict[TopicPartition, Reassignment],
        live_brokers: set[int],
        tiers: Callable[[Collection[TopicPartition]], dict[TopicPartition, TierOffsets]],
    ) -> None:
        self._options = options
        self._reassignments = reassignments
        self._live_brokers = live_brokers
        self._tiers = tiers
        self._filtered = any(given(options, report) for report in REPORTS)

    def show(self, topic: TopicDescription, configs: Sequence[ConfigEntry]) -> None:
        own = [config for config in configs if not config.is_default]
        if not self._filtered and (own or not self._options.topics_with_overrides):
            print(self._topic_line(topic, own))
        if self._options.topics_with_overrides:
            return
        minimum = next((int(c.value or 1) for c in configs if c.name == "min.insync.replicas"), 1)
        selected = [
            partition
            for partition in topic.partitions
            if not self._filtered or self._selected(topic.name, partition, minimum)
        ]
        tiers = self._tiers_of(topic.name, selected) if is_tiered(configs) else {}
        for partition in selected:
            line = self._partition_line(topic.name, partition)
            print(line + _tier_fields(tiers.get(TopicPartition(topic.name, partition.partition))))

    def _tiers_of(
        self, topic: str, partitions: Sequence[PartitionDescription]
    ) -> dict[TopicPartition, TierOffsets]:
        led = [each for each in partitions if each.leader in self._live_brokers]
        return self._tiers([TopicPartition(topic, each.partition) for each in led])

    def _topic_line(self, topic: TopicDescription, own: Sequence[ConfigEntry]) -> str:
        parts = [f"Topic: {topic.name}"]
        if topic.id != ZERO_UUID:
            parts.append(f"TopicId: {format_uuid(topic.id)}")
        parts.append(f"PartitionCount: {len(topic.partitions)}")
        parts.append(f"ReplicationFactor: {self._factor(topic.name, topic.partitions[0])}")
        values = [f"{config.name}={'null' if config.value is None else config.value}" for config in own]
        parts.append("Configs: " + ",".join(values))
        return "\t".join(parts)

    def _partition_line(self, topic: str, partition: PartitionDescription) -> str:
        reassignment = self._reassignments.get(TopicPartition(topic, partition.partition))
        parts = [
            "",
            f"Topic: {topic}",
            f"Partition: {partition.partition}",
            f"Leader: {partition.leader if partition.leader >= 0 else 'none'}",
            f"Replicas: {joined(partition.replicas)}",
            f"Isr: {joined(partition.isr)}",
        ]
        if reassignment is not None:
            parts.append(f"Adding Replicas: {joined(reassignment.adding)}")
            parts.append(f"Removing Replicas: {joined(reassignment.removing)}")
        parts.append(f"Elr: {joined(partition.elr)}")
        parts.append(f"LastKnownElr: {joined(partition.last_known_elr)}")
        return "\t".join(parts)

    def _factor(self, topic: str, partition: PartitionDescription) -> int:
        """Return the replication factor without the replicas that an ongoing reassignment adds."""
        reassignment = self._reassignments.get(TopicPartition(topic, partition.partition))
        if reassignment is None or not {*reassignment.adding, *reassignment.removing} & set(
            partition.replicas
        ):
            return len(partition.replicas)
        return len(reassignment.replicas) - len(reassignment.adding)

    def _selected(self, topic: str, partition: PartitionDescription, minimum: int) -> bool:
        options, in_sync = self._options, len(partition.isr)
        return (
            (options.under_replicated_partitions and self._factor(topic, partition) > in_sync)
            or (options.unavailable_partitions and partition.leader not in self._live_brokers)
            or (options.under_min_isr_partitions and (partition.leader < 0 or in_sync < minimum))
            or (options.at_min_isr_partitions and in_sync == minimum)
        )


def _tier_fields(tiers: TierOffsets | None) -> str:
    if tiers is None:
        return ""
    return (
        f"\tEarliest: {tiers.earliest}\tEarliestLocal: {tiers.earliest_local}"
        f"\tLatestTiered: {tiers.latest_tiered}"
    )


def joined(ids: Sequence[int] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))
