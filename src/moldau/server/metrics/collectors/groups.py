"""Groups and transactions of the coordinators on this node, and the lag of groups.

A partition whose high watermark is unknown has no lag, and then the topic has no sum: a part of it would look
like a group that has caught up. `moldau_metrics_omitted` counts such partitions.

The positions of share groups are those of their share coordinators, which may be several nodes: each reports
its partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from moldau.base.clock import Clock
from moldau.base.ids import TopicPartition
from moldau.groups.group import CLASSIC, CONSUMER, GROUP_TYPES, SHARE, STREAMS, CommittedOffset
from moldau.groups.shard import GroupShard
from moldau.metrics.catalog import coordinators, exporter, process
from moldau.metrics.end_offsets import NO_AGE, EndOffsets
from moldau.metrics.exposition import Scrape, escaped
from moldau.protocol.stored.pipeline_markers import is_marker
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.coordinators import Coordinators
from moldau.server.metrics.collectors.watermarks import HighWatermarks
from moldau.server.metrics.loop import RateSampler
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.publisher import MetadataPublisher
from moldau.share.persisted_state import UNKNOWN_COUNT
from moldau.share.state_batches import UNKNOWN_START_OFFSET
from moldau.transactions.state import TransactionStatus

#: The window of the times to load partitions.
_LOADS_SECONDS: Final = 60.0
_CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_SHARE_STATES: Final = ("Empty", "Stable", "Dead")
_STREAMS_STATES: Final = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead")


class GroupCollector:
    def __init__(
        self,
        node_coordinators: Coordinators,
        replicas: ReplicaManager,
        metadata: MetadataPublisher,
        clock: Clock,
    ) -> None:
        self._coordinators = node_coordinators
        self._metadata = metadata
        self._clock = clock
        #: The log end offsets that scrapes have seen, from which the age of a lag is interpolated.
        self._ends: dict[TopicPartition, EndOffsets] = {}
        self._rates = {name: RateSampler(clock.monotonic) for name in coordinators.EVENTS}
        self._watermarks = HighWatermarks(replicas, metadata, node_coordinators.high_watermarks)

    def sample(self) -> None:
        for name, rate in self._rates.items():
            rate.sample(getattr(self._coordinators.group_counts, name))

    async def collect(self, scrape: Scrape, turn: ScrapeSlice, max_partitions: int) -> None:
        """Add the samples of groups; at most `max_partitions` partitions of groups have their own.

        A group without committed offsets counts as a partition: it has a sample, too.
        """
        groups = self._coordinators.groups
        by_type, states, offsets, omitted = Counter[str](), Counter[tuple[str, str]](), 0, 0
        found: list[tuple[str, Mapping[TopicPartition, Position]]] = []
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
                    found.append((group.group_id, _positions(committed)))
                    _collect_members(scrape, shard, group.group_id)
                else:
                    omitted += cost
                await turn.pause()
        for group_id, positions in (await self._share_positions(turn)).items():
            if len(positions) <= room:
                room -= len(positions)
                found.append((group_id, positions))
            else:
                omitted += len(positions)
        _collect_states(scrape, by_type, states, offsets)
        for name, (total, rate) in coordinators.EVENTS.items():
            count = getattr(self._coordinators.group_counts, name)
            scrape.add(total, count)
            scrape.add(rate, self._rates[name].per_second(count))
        scrape.add(process.OMITTED, omitted, "group_partitions")
        await self._watermarks.ask_for({partition for _, each in found for partition in each}, turn)
        now_ms, unknown = self._clock.time_ms(), 0
        await self._observe({partition for _, each in found for partition in each}, now_ms, turn)
        for group_id, of_group in found:
            lines = OffsetLines(scrape, group_id)
            for partition, each in of_group.items():
                end = self._watermarks.get(partition)
                if each.completed is None:
                    end = None
                lines.add(
                    partition,
                    each.offset,
                    end,
                    completed=each.completed or 0,
                    exists=self._watermarks.exists(partition),
                )
                ends = self._ends.get(partition)
                if end is not None and ends is not None:
                    lines.add_seconds(partition, each.offset + (each.completed or 0), end, ends, now_ms)
                await turn.pause()
            unknown += lines.add_sums()
        scrape.add(process.OMITTED, unknown, "group_lags")

    async def _share_positions(self, turn: ScrapeSlice) -> dict[str, dict[TopicPartition, Position]]:
        """Return the positions of share groups, as far as this node is their share coordinator."""
        found: dict[str, dict[TopicPartition, Position]] = {}
        by_id = self._metadata.image.topics.by_id
        for _, shard in list(self._coordinators.share.active_shards()):
            for key, state in shard.states():
                topic = by_id.get(key.topic_id)
                if topic is not None and state.start_offset != UNKNOWN_START_OFFSET:
                    completed = None if state.complete_count == UNKNOWN_COUNT else state.complete_count
                    place = TopicPartition(topic.name, key.partition)
                    found.setdefault(key.group_id, {})[place] = Position(state.start_offset, completed)
                await turn.pause()
        return found

    async def _observe(self, partitions: AbstractSet[TopicPartition], now_ms: int, turn: ScrapeSlice) -> None:
        """Add the high watermarks to the history; forget partitions that no group reads here any more."""
        before, self._ends = self._ends, {}
        for partition in partitions:
            ends = self._ends[partition] = before.get(partition) or EndOffsets()
            end = self._watermarks.get(partition)
            if end is not None:
                ends.add(now_ms, end)
            await turn.pause()


class Position(NamedTuple):
    """The offset up to which a group has read, and how many later records it has read, None if unknown."""

    offset: int
    completed: int | None = 0


def _positions(committed: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, Position]:
    """Return the positions of a group; the number of a batch that a pipeline has written is none."""
    return {place: Position(at.offset) for place, at in committed.items() if not is_marker(at.metadata)}


class OffsetLines:
    """Appends the samples of one group: offset and lag of each partition, then their sums by topic."""

    def __init__(self, scrape: Scrape, group_id: str) -> None:
        self._scrape = scrape
        self._group_id = group_id
        self._prefix = f'{{consumergroup="{escaped(group_id)}",topic="'
        self._offsets = scrape.lines(exporter.GROUP_OFFSET).append
        self._lags = scrape.lines(exporter.GROUP_LAG).append
        self._seconds = scrape.lines(exporter.GROUP_LAG_SECONDS).append
        self._millis = scrape.lines(exporter.GROUP_LAG_MILLIS).append
        self._uncommitted = scrape.lines(exporter.GROUP_UNCOMMITTED).append
        self._offset_sums = Counter[str]()
        self._lag_sums = Counter[str]()
        #: Partitions without a lag by topic.
        self._unknown = Counter[str]()

    def add(
        self,
        partition: TopicPartition,
        offset: int,
        end: int | None,
        *,
        completed: int = 0,
        exists: bool = True,
    ) -> None:
        """Add a partition; `end` is its high watermark, None if it or the lag is unknown.

        `completed` are records after the offset that a share group has completed.
        """
        topic, index = partition
        labels = f'{self._prefix}{escaped(topic)}",partition="{index}"}} '
        self._offsets(f"{exporter.GROUP_OFFSET.name}{labels}{offset}")
        self._offset_sums[topic] += offset
        if end is None:
            self._unknown[topic] += exists
            return
        lag = max(0, end - offset - completed)
        self._lags(f"{exporter.GROUP_LAG.name}{labels}{lag}")
        self._uncommitted(f"{exporter.GROUP_UNCOMMITTED.name}{labels}{lag}")
        self._lag_sums[topic] += lag

    def add_seconds(
        self, partition: TopicPartition, offset: int, end: int, ends: EndOffsets, now_ms: int
    ) -> None:
        """Add the age of the record at an offset, unless only scrapes after its append are known.

        The first scrapes of a group that lags know a lower bound: the time since the first one.
        """
        age = ends.age_of(offset, now_ms) if offset < end else NO_AGE
        if age is not None and (age.ms or age.exact):
            topic, index = partition
            labels = f'{self._prefix}{escaped(topic)}",partition="{index}"}} '
            self._seconds(f"{exporter.GROUP_LAG_SECONDS.name}{labels}{age.ms / 1000}")
            self._millis(f"{exporter.GROUP_LAG_MILLIS.name}{labels}{age.ms}")

    def add_sums(self) -> int:
        """Add the sums of topics; return the number of partitions whose lag is unknown."""
        for topic, total in self._offset_sums.items():
            self._scrape.add(exporter.GROUP_OFFSET_SUM, total, self._group_id, topic)
        for topic, total in self._lag_sums.items():
            if not self._unknown[topic]:
                self._scrape.add(exporter.GROUP_LAG_SUM, total, self._group_id, topic)
        return self._unknown.total()


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
    for state in _STREAMS_STATES:
        scrape.add(coordinators.STREAMS_GROUPS, states[STREAMS, state], state)


async def collect_transactions(scrape: Scrape, turn: ScrapeSlice, node_coordinators: Coordinators) -> None:
    counts = Counter[str]()
    for _, shard in list(node_coordinators.transactions.active_shards()):
        counts.update(shard.count_by_state())
        await turn.pause()
    for status in TransactionStatus:
        name = status.name
        scrape.add(coordinators.TRANSACTIONS, counts[name], "".join(map(str.capitalize, name.split("_"))))
    for family, coordinator in (
        (coordinators.PARTITIONS, node_coordinators.groups),
        (coordinators.TRANSACTION_PARTITIONS, node_coordinators.transactions),
    ):
        for state, count in coordinator.count_by_state().items():
            scrape.add(family, count, state)
    for (mean, largest), loaded_by in (
        (coordinators.GROUP_LOAD_TIMES, node_coordinators.groups),
        (coordinators.TRANSACTION_LOAD_TIMES, node_coordinators.transactions),
    ):
        loads = loaded_by.recent_loads(_LOADS_SECONDS)
        scrape.add(mean, 1000 * sum(loads) / max(1, len(loads)))
        scrape.add(largest, 1000 * max(loads, default=0.0))
