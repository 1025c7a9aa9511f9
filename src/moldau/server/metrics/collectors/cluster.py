"""The cluster as the active controller sees it, and the quorum.

`ElectionCounter` follows the committed metadata: while this node is the active controller, it counts the
partitions that get another leader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metrics.catalog import controller, exporter, raft
from moldau.metrics.exposition import Scrape
from moldau.metrics.latencies import QUANTILES, Latencies, quantiles_ms
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.raft.types import Role
from moldau.server.metrics.loop import MeanSampler, RateSampler
from moldau.server.metrics.slices import ScrapeSlice

#: Elections of the quorum whose duration is remembered.
_ELECTIONS: Final = 16


class ElectionCounter:
    def __init__(self, quorum: MetadataQuorum, now: Callable[[], float]) -> None:
        """`now` returns monotonic seconds."""
        self._now = now
        self.leader_elections = 0
        self.unclean_elections = 0
        self.controller_elections = int(quorum.is_active)
        #: Active controllers that this node has seen, the same one in another epoch too.
        self.controllers_seen = int(quorum.leader_id >= 0)
        self._epoch_seen = quorum.leader_epoch if quorum.leader_id >= 0 else -1
        self.times = Latencies()
        #: How long there was no leader of the quorum, in seconds, of the last elections.
        self.without_leader: deque[float] = deque(maxlen=_ELECTIONS)
        self._leaderless_since: float | None = None
        self._quorum = quorum
        self._was_active = quorum.is_active
        quorum.add_listener(self._apply)
        quorum.on_leader_change(self._controller_changed)

    def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if not self._quorum.is_active:
            return
        before, count = delta.image.topics, self.leader_elections
        for topic_id, indexes in delta.topics_changed.items():
            for index in indexes:
                old, new = before.partition(topic_id, index), image.topics.partition(topic_id, index)
                if old is None or new is None or not new.has_leader or new.leader == old.leader:
                    continue
                self.leader_elections += 1
                self.unclean_elections += new.leader not in old.isr and new.leader not in old.elr

        mean_us = round(self._quorum.commit_seconds / max(1, self._quorum.commits) * 1e6)
        for _ in range(self.leader_elections - count):
            self.times.record(mean_us)

    def _controller_changed(self) -> None:
        now = self._now()
        if self._quorum.leader_id < 0:
            self._leaderless_since = self._leaderless_since or now
        elif self._leaderless_since is not None:
            self.without_leader.append(now - self._leaderless_since)
            self._leaderless_since = None
        if self._quorum.leader_id >= 0 and self._quorum.leader_epoch != self._epoch_seen:
            self._epoch_seen = self._quorum.leader_epoch
            self.controllers_seen += 1
        was_active, self._was_active = self._was_active, self._quorum.is_active
        self.controller_elections += self._was_active and not was_active


class TopicCounts(NamedTuple):
    image: MetadataImage
    partitions: int
    offline: int
    not_preferred: int


class ClusterCollector:
    """Counts the partitions of an image only once."""

    def __init__(self) -> None:
        self._counts = TopicCounts(MetadataImage.empty(), 0, 0, 0)

    async def collect(
        self, scrape: Scrape, turn: ScrapeSlice, quorum: MetadataQuorum, elections: ElectionCounter
    ) -> None:
        scrape.add(controller.ACTIVE_CONTROLLERS, int(quorum.is_active))
        scrape.add(controller.NEW_ACTIVE, elections.controller_elections)
        scrape.add(controller.NEW_ACTIVE_CONTROLLERS, elections.controllers_seen)
        scrape.add(controller.LEADER_ELECTIONS, elections.leader_elections)
        scrape.add(controller.UNCLEAN_ELECTIONS, elections.unclean_elections)
        times = elections.times
        quantiles = zip(QUANTILES, quantiles_ms(times.recent()), strict=True)
        scrape.add_summary(controller.ELECTION_TIME, quantiles, times.sum_us / 1000, times.count)
        lasted_ms = [1000 * seconds for seconds in elections.without_leader]
        for family in raft.ELECTION_LATENCY:
            scrape.add(family, sum(lasted_ms) / max(1, len(lasted_ms)))
        for family in raft.ELECTION_LATENCY_MAX:
            scrape.add(family, max(lasted_ms, default=0.0))
        scrape.add(controller.LAST_COMMITTED, quorum.image.offset)
        if quorum.is_active:
            image = quorum.image
            _collect_brokers(scrape, image)
            counts = await self._count(image, turn)
            scrape.add(controller.TOPICS, len(image.topics.by_id))
            scrape.add(controller.PARTITIONS, counts.partitions)
            scrape.add(controller.OFFLINE_PARTITIONS, counts.offline)
            scrape.add(controller.NOT_PREFERRED, counts.not_preferred)

    async def _count(self, image: MetadataImage, turn: ScrapeSlice) -> TopicCounts:
        if self._counts.image is not image:
            partitions = offline = not_preferred = 0
            for topic in image.topics.by_id.values():
                for registration in topic.partitions.values():
                    partitions += 1
                    offline += not registration.has_leader
                    not_preferred += registration.leader != registration.preferred_leader
                await turn.pause()
            self._counts = TopicCounts(image, partitions, offline, not_preferred)
        return self._counts


def _collect_brokers(scrape: Scrape, image: MetadataImage) -> None:
    brokers = image.cluster.brokers.values()
    active = sum(not broker.fenced for broker in brokers)
    scrape.add(controller.ACTIVE_BROKERS, active)
    scrape.add(controller.FENCED_BROKERS, len(brokers) - active)
    scrape.add(controller.STOPPING_BROKERS, sum(broker.in_controlled_shutdown for broker in brokers))
    scrape.add(exporter.BROKERS, active)
    for broker in brokers:
        for endpoint in broker.endpoints[:1]:
            scrape.add(exporter.BROKER_INFO, 1, broker.id, f"{endpoint.host}:{endpoint.port}")


def collect_quorum(
    scrape: Scrape, quorum: MetadataQuorum, rate: RateSampler, commit_latency: MeanSampler
) -> None:
    role = quorum.role
    latency_ms = 1000 * commit_latency.mean(quorum.commit_seconds, quorum.commits)
    is_leader = role is Role.LEADER
    per_second = rate.per_second(quorum.log_end_offset)
    channel = quorum.channel_counts
    for families, value in (
        (raft.CURRENT_LEADER, quorum.leader_id),
        (raft.CURRENT_EPOCH, quorum.leader_epoch),
        (raft.CURRENT_VOTE, quorum.voted_id),
        (raft.HIGH_WATERMARK, quorum.high_watermark),
        (raft.LOG_END_OFFSET, quorum.log_end_offset),
        (raft.VOTERS, len(quorum.voters.ids)),
        (raft.COMMIT_LATENCY, latency_ms),
        (raft.CHANNEL_REQUESTS, channel.requests),
        (raft.CHANNEL_RESPONSES, channel.responses),
        (raft.CHANNEL_BYTES_IN, channel.bytes_received),
        (raft.CHANNEL_BYTES_OUT, channel.bytes_sent),
        (raft.APPEND_RATE, per_second if is_leader else 0.0),
        (raft.FETCH_RATE, 0.0 if is_leader else per_second),
    ):
        for family in families:
            scrape.add(family, value)
    is_observer = role in (Role.FOLLOWER, Role.UNATTACHED) and not quorum.is_voter
    state = "observer" if is_observer else role.name.lower()
    scrape.add(raft.STATE_INFO, 1, state)
    scrape.add(raft.STATE, 1, state)
