"""One round of requests, whose number depends on the brokers and not on the groups.

ListGroups to every broker, which also shows the coordinator of each group; OffsetFetch and the description of
groups to the coordinators, 100 groups at a time; Metadata for the topics with commits; ListOffsets to the
leaders. For partitions that have lag when they are first seen, a few more ListOffsets find its age. What a
broker that does not answer knows is missing in this round; all other groups are complete.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from moldau.base import offsets as special
from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.json_log import event
from moldau.client.admin.quotas import MatchType, QuotaFilter, describe_client_quotas
from moldau.client.wire.cluster import Cluster
from moldau.lag.collection.batches import Batches
from moldau.lag.collection.groups import Described, Listed, describe_groups, list_groups
from moldau.lag.collection.offsets import Committed, committed_offsets, partition_offsets
from moldau.lag.collection.past import past_offsets
from moldau.lag.evaluation.observation import GroupObservation, Member, Points, Quotas, Round
from moldau.lag.evaluation.state import position_of
from moldau.lag.filters import NameFilter
from moldau.network.failures import ConnectionLost
from moldau.protocol.messages.metadata import MetadataResponse

logger = logging.getLogger(__name__)

R = TypeVar("R")

_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
#: Quotas change rarely; they are read once in this many rounds.
_ROUNDS_PER_QUOTAS: Final = 30
#: Partitions per round whose past end offsets are searched.
_MAX_SEARCHED: Final = 1000


class Collector:
    def __init__(self, cluster: Cluster, clock: Clock, groups: NameFilter, topics: NameFilter) -> None:
        self._cluster = cluster
        self._clock = clock
        self._groups = groups
        self._topics = topics
        self._rounds = 0
        self._observed: set[TopicPartition] = set()
        self._quotas: Quotas = {}

    async def collect(self) -> Round:
        """Send the requests of a round; `KafkaError` if no broker can be reached."""
        batches = Batches()
        await _twice(self._cluster.refresh)
        listed, errors = await list_groups(self._cluster, batches)
        if errors and len(errors) == len(self._cluster.nodes):
            raise errors[0]
        for error in errors:
            logger.warning("Some groups are missing in this round: %s", error, extra=event("lag.incomplete"))
        groups = [each for each in listed if self._groups.allows(each.group)]
        committed = await committed_offsets(self._cluster, batches, groups)
        described = await describe_groups(self._cluster, batches, groups)
        observed = {each.group: self._observation(each, committed, described) for each in groups}
        readers = {name: each for name, each in observed.items() if self._reads(each)}
        return await self._with_offsets(batches, readers)

    async def _with_offsets(self, batches: Batches, groups: Mapping[str, GroupObservation]) -> Round:
        topics = sorted(_topics(groups.values()))
        metadata = await _twice(lambda: self._cluster.metadata(topics))
        leaders = _leaders(metadata)
        # Of all partitions of the topics, also those that no group reads.
        ends = await partition_offsets(
            self._cluster, batches, leaders, dict.fromkeys(leaders, special.LATEST)
        )
        now = self._clock.time_ms()
        lagging = _lagging(groups.values(), ends)
        starts = await partition_offsets(
            self._cluster, batches, leaders, dict.fromkeys(lagging, special.EARLIEST)
        )
        past = await self._past(batches, leaders, lagging, starts, ends, now)
        if self._rounds % _ROUNDS_PER_QUOTAS == 0:
            self._quotas = await _quotas(self._cluster)
        self._rounds += 1
        return Round(
            now,
            groups,
            ends,
            starts,
            {topic.name or "": topic.topic_id for topic in metadata.topics if not topic.error_code},
            frozenset(topic.name or "" for topic in metadata.topics if topic.error_code in _GONE),
            self._quotas,
            past,
            {topic.name or "": len(topic.partitions) for topic in metadata.topics if not topic.error_code},
        )

    async def _past(
        self,
        batches: Batches,
        leaders: Mapping[TopicPartition, int],
        lagging: Mapping[TopicPartition, int],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        now_ms: int,
    ) -> dict[TopicPartition, Points]:
        """Search the end offsets of the past in partitions that have lag and were not observed until now."""
        wanted = {
            partition: max(offset, starts.get(partition, 0))
            for partition, offset in lagging.items()
            if partition not in self._observed
        }
        chosen = dict(islice(wanted.items(), _MAX_SEARCHED))
        self._observed = set(ends)
        return await past_offsets(self._cluster, batches, leaders, chosen, ends, now_ms)

    def _observation(
        self,
        listed: Listed,
        committed: Mapping[str, Committed | KafkaError],
        described: Mapping[str, Described | KafkaError],
    ) -> GroupObservation:
        offsets, group = committed.get(listed.group), described.get(listed.group)
        error = next((each for each in (offsets, group) if isinstance(each, KafkaError)), None)
        known = group if isinstance(group, Described) else None
        read = offsets if isinstance(offsets, Committed) else None
        return GroupObservation(
            listed.group,
            listed.type,
            known.state if known else listed.state,
            None
            if read is None
            else {at: each for at, each in read.offsets.items() if self._topics.allows(at.topic)},
            tuple(map(self._with_topics, known.members)) if known else None,
            known.epoch if known else None,
            None if error is None else str(error),
            frozenset() if read is None else self._allowed(read.unread),
        )

    def _with_topics(self, member: Member) -> Member:
        """Return a member with its partitions of the topics that are observed."""
        return replace(member, partitions=self._allowed(member.partitions))

    def _allowed(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        if self._topics.allows_all:
            return partitions
        return frozenset(each for each in partitions if self._topics.allows(each.topic))

    def _reads(self, group: GroupObservation) -> bool:
        """Return whether a group has offsets or members, or may have: one of them could not be read.

        If only some topics are observed, members count that own partitions of them.
        """
        if group.committed is None or group.members is None or group.committed or group.unread:
            return True
        return any(self._topics.allows_all or each.partitions for each in group.members)


async def _twice(ask: Callable[[], Awaitable[R]]) -> R:
    """Ask again if a connection breaks: any other broker can answer."""
    try:
        return await ask()
    except ConnectionLost:
        return await ask()


def _topics(groups: Iterable[GroupObservation]) -> set[str]:
    topics: set[str] = set()
    for group in groups:
        topics.update(each.topic for each in group.committed or ())
        topics.update(each.topic for each in group.unread)
        topics.update(each.topic for member in group.members or () for each in member.partitions)
    return topics


def _leaders(metadata: MetadataResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name or "", each.partition_index): each.leader_id
        for topic in metadata.topics
        for each in topic.partitions
    }


def _lagging(
    groups: Iterable[GroupObservation], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the lowest committed offset of partitions in which a group lags."""
    lagging: dict[TopicPartition, int] = {}
    for group in groups:
        for partition, at in (group.committed or {}).items():
            end = ends.get(partition, 0)
            if at.offset < end:
                lagging[partition] = min(lagging.get(partition, end), position_of(at, end))
    return lagging


async def _quotas(cluster: Cluster) -> Quotas:
    """Return the `consumer_byte_rate` of users and client ids; nothing if this client may not read quotas."""
    limits: dict[tuple[str | None, str | None], float] = {}
    try:
        for kind in ("client-id", "user"):
            wanted = [QuotaFilter(kind, MatchType.ANY)]
            found = await describe_client_quotas(cluster, wanted, strict=False)
            for entity, values in found.items():
                names = {of: name or "" for of, name in entity}
                if "consumer_byte_rate" in values and "ip" not in names:
                    limits[names.get("user"), names.get("client-id")] = values["consumer_byte_rate"]
    except KafkaError as error:
        logger.info("Quotas are not considered: %s", error, extra=event("lag.quotas_not_read"))
    return limits
