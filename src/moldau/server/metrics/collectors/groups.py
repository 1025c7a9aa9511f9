"""Groups and transactions of the coordinators on this node, and the lag of groups.

The lag needs the high watermark of each partition. The leader of the partition knows it, and a replica that
is in sync nearly does; for other partitions the leader is asked, for at most a second per scrape.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.groups.group import CLASSIC, CONSUMER, GROUP_TYPES, SHARE, CommittedOffset
from moldau.groups.shard import GroupShard
from moldau.metrics.catalog import coordinators, exporter, process
from moldau.metrics.exposition import Scrape, escaped
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.coordinators import Coordinators
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.publisher import MetadataPublisher
from moldau.server.share.latest_offsets import LatestOffsets
from moldau.share.keys import SharePartitionKey
from moldau.transactions.state import TransactionStatus

_ASK_SECONDS: Final = 1.0
#: Partitions asked for in one scrape.
_MAX_ASKED: Final = 1000
_CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_SHARE_STATES: Final = ("Empty", "Stable", "Dead")


class GroupCollector:
    def __init__(
        self, node_coordinators: Coordinators, replicas: ReplicaManager, metadata: MetadataPublisher
    ) -> None:
        self._coordinators = node_coordinators
        self._watermarks = HighWatermarks(replicas, metadata, node_coordinators.latest_offsets)

    async def collect(self, scrape: Scrape, turn: ScrapeSlice, max_partitions: int) -> None:
        """Add the samples of groups; at most `max_partitions` partitions of groups have their own.

        A group without committed offsets counts as a partition: it has a sample, too.
        """
        groups = self._coordinators.groups
        by_type, states, offsets, omitted = Counter[str](), Counter[tuple[str, str]](), 0, 0
        found: list[tuple[str, Mapping[TopicPartition, CommittedOffset]]] = []
        room = max_partitions
        for _, shard in list(groups.active_shards()):
            for group in shard.registry:
                by_type[group.type] += 1
                states[group.type, group.state_name] += 1
                committed = dict(shard.committed_offsets(group.group_id))
                offsets += len(committed)
                cost = max(1, len(committed))
                if cost <= room:
                    room -= cost
                    found.append((group.group_id, committed))
                    _collect_members(scrape, shard, group.group_id)
                else:
                    omitted += cost
                await turn.pause()
        _collect_states(scrape, by_type, states, offsets)
        scrape.add(process.OMITTED, omitted, "group_partitions")
        await self._watermarks.ask_for({partition for _, each in found for partition in each}, turn)
        for group_id, of_group in found:
            self._collect_offsets(scrape, group_id, of_group)
            await turn.pause()

    def _collect_offsets(
        self, scrape: Scrape, group_id: str, committed: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        offsets, lags = scrape.lines(exporter.GROUP_OFFSET), scrape.lines(exporter.GROUP_LAG)
        uncommitted = scrape.lines(exporter.GROUP_UNCOMMITTED)
        offset_name, lag_name = exporter.GROUP_OFFSET.name, exporter.GROUP_LAG.name
        offset_sums: defaultdict[str, int] = defaultdict(int)
        lag_sums: defaultdict[str, int] = defaultdict(int)
        group = escaped(group_id)
        for partition, each in committed.items():
            topic, index = partition
            labels = f'{{consumergroup="{group}",topic="{escaped(topic)}",partition="{index}"}} '
            offsets.append(f"{offset_name}{labels}{each.offset}")
            offset_sums[topic] += each.offset
            end = self._watermarks.get(partition)
            if end is not None:
                lag = max(0, end - each.offset)
                lags.append(f"{lag_name}{labels}{lag}")
                uncommitted.append(f"{exporter.GROUP_UNCOMMITTED.name}{labels}{lag}")
                lag_sums[topic] += lag
        for topic, total in offset_sums.items():
            scrape.add(exporter.GROUP_OFFSET_SUM, total, group_id, topic)
        for topic, total in lag_sums.items():
            scrape.add(exporter.GROUP_LAG_SUM, total, group_id, topic)


def _collect_members(scrape: Scrape, shard: GroupShard, group_id: str) -> None:
    group = shard.registry.find(group_id)
    members = getattr(group, "members", ())
    scrape.add(exporter.GROUP_MEMBERS, len(members), group_id)


def _collect_states(
    scrape: Scrape, by_type: Counter[str], states: Counter[tuple[str, str]], offsets: int
) -> None:
    scrape.add(coordinators.GROUPS, by_type.total())
    scrape.add(coordinators.OFFSETS, offsets)
    for state, family in coordinators.CLASSIC_STATES.items():
        scrape.add(family, states[CLASSIC, state])
    for group_type in sorted(GROUP_TYPES):
        scrape.add(coordinators.GROUPS_BY_TYPE, by_type[group_type], group_type)
    for state in _CONSUMER_STATES:
        scrape.add(coordinators.CONSUMER_GROUPS, states[CONSUMER, state], state)
    for state in _SHARE_STATES:
        scrape.add(coordinators.SHARE_GROUPS, states[SHARE, state], state)


def collect_transactions(scrape: Scrape, node_coordinators: Coordinators) -> None:
    counts = Counter[str]()
    for _, shard in list(node_coordinators.transactions.active_shards()):
        counts.update(shard.count_by_state())
    for status in TransactionStatus:
        name = status.name
        scrape.add(coordinators.TRANSACTIONS, counts[name], "".join(map(str.capitalize, name.split("_"))))
    for family, coordinator in (
        (coordinators.PARTITIONS, node_coordinators.groups),
        (coordinators.TRANSACTION_PARTITIONS, node_coordinators.transactions),
    ):
        for state, count in coordinator.count_by_state().items():
            scrape.add(family, count, state)


class HighWatermarks:
    """The high watermarks of partitions, wherever their leaders are."""

    def __init__(
        self, replicas: ReplicaManager, metadata: MetadataPublisher, latest_offsets: LatestOffsets
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._latest_offsets = latest_offsets
        self._asked: dict[TopicPartition, int] = {}

    def get(self, partition: TopicPartition) -> int | None:
        local = self._local(partition)
        return self._asked.get(partition) if local is None else local

    async def ask_for(self, partitions: set[TopicPartition], turn: ScrapeSlice) -> None:
        """Ask the leaders of partitions that this node has no in-sync replica of."""
        self._asked = {}
        topics = self._metadata.image.topics.by_name
        remote = [each for each in sorted(partitions) if each.topic in topics and self._local(each) is None]
        if not remote:
            return
        tasks = {
            asyncio.ensure_future(
                self._latest_offsets.of(SharePartitionKey("", topics[each.topic].id, each.partition))
            ): each
            for each in remote[:_MAX_ASKED]
        }
        async with turn.waiting():
            done, late = await asyncio.wait(tasks, timeout=_ASK_SECONDS)
        for task in late:
            task.cancel()
        for task in done:
            try:
                self._asked[tasks[task]] = task.result()
            except KafkaError:
                continue

    def _local(self, partition: TopicPartition) -> int | None:
        try:
            found = self._replicas.by_name(*partition)
            registration, log = found.registration, found.log
        except KafkaError:
            return None
        if log is None or not (found.is_leader or self._replicas.broker_id in registration.isr):
            return None
        return log.high_watermark
