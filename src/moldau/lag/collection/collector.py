"""One round of requests, whose number depends on the brokers and not on the groups.

ListGroups to every broker, which also shows the coordinator of each group; OffsetFetch and the description of
groups to the coordinators, 100 groups at a time; Metadata for the topics with commits; ListOffsets to the
leaders. What a broker that does not answer knows is missing in this round; all other groups are complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from moldau.base import offsets as special
from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.quotas import MatchType, QuotaFilter, describe_client_quotas
from moldau.client.wire.cluster import Cluster
from moldau.lag.collection.batches import Batches
from moldau.lag.collection.groups import Described, Listed, describe_groups, list_groups
from moldau.lag.collection.offsets import Committed, committed_offsets, partition_offsets
from moldau.lag.evaluation.observation import GroupObservation, Round
from moldau.lag.filters import NameFilter
from moldau.protocol.messages.metadata import MetadataResponse

logger = logging.getLogger(__name__)

_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
#: Quotas change rarely; they are read once in this many rounds.
_ROUNDS_PER_QUOTAS: Final = 30


class Collector:
    def __init__(self, cluster: Cluster, clock: Clock, groups: NameFilter, topics: NameFilter) -> None:
        self._cluster = cluster
        self._clock = clock
        self._groups = groups
        self._topics = topics
        self._rounds = 0
        self._quotas: Mapping[str, float] = {}

    async def collect(self) -> Round:
        """Send the requests of a round; `KafkaError` if no broker can be reached."""
        batches = Batches()
        await self._cluster.refresh()
        listed, errors = await list_groups(self._cluster, batches)
        if errors and len(errors) == len(self._cluster.nodes):
            raise errors[0]
        for error in errors:
            logger.warning("Some groups are missing in this round: %s", error)
        groups = [each for each in listed if self._groups.allows(each.group)]
        committed = await committed_offsets(self._cluster, batches, groups)
        described = await describe_groups(self._cluster, batches, groups)
        observed = {each.group: self._observation(each, committed, described) for each in groups}
        readers = {name: each for name, each in observed.items() if _reads(each)}
        return await self._with_offsets(batches, readers)

    async def _with_offsets(self, batches: Batches, groups: Mapping[str, GroupObservation]) -> Round:
        wanted = _partitions(groups.values())
        metadata = await self._cluster.metadata(sorted({each.topic for each in wanted}))
        leaders = _leaders(metadata)
        ends = await partition_offsets(self._cluster, batches, leaders, wanted, special.LATEST)
        now = self._clock.time_ms()
        starts = await partition_offsets(
            self._cluster, batches, leaders, _lagging(groups.values(), ends), special.EARLIEST
        )
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
        )

    def _observation(
        self,
        listed: Listed,
        committed: Mapping[str, Committed | KafkaError],
        described: Mapping[str, Described | KafkaError],
    ) -> GroupObservation:
        offsets, group = committed.get(listed.group), described.get(listed.group)
        error = next((each for each in (offsets, group) if isinstance(each, KafkaError)), None)
        known = group if isinstance(group, Described) else None
        return GroupObservation(
            listed.group,
            listed.type,
            known.state if known else listed.state,
            {at: each for at, each in offsets.items() if self._topics.allows(at.topic)}
            if isinstance(offsets, dict)
            else None,
            known.members if known else None,
            known.epoch if known else None,
            None if error is None else str(error),
        )


def _reads(group: GroupObservation) -> bool:
    """Return whether a group has offsets or members, or may have: one of them could not be read."""
    return group.committed is None or group.members is None or bool(group.committed or group.members)


def _partitions(groups: Iterable[GroupObservation]) -> set[TopicPartition]:
    wanted: set[TopicPartition] = set()
    for group in groups:
        wanted.update(group.committed or ())
        for member in group.members or ():
            wanted.update(member.partitions)
    return wanted


def _leaders(metadata: MetadataResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name or "", each.partition_index): each.leader_id
        for topic in metadata.topics
        for each in topic.partitions
    }


def _lagging(groups: Iterable[GroupObservation], ends: Mapping[TopicPartition, int]) -> set[TopicPartition]:
    return {
        partition
        for group in groups
        for partition, at in (group.committed or {}).items()
        if at.offset < ends.get(partition, 0)
    }


async def _quotas(cluster: Cluster) -> dict[str, float]:
    """Return the `consumer_byte_rate` of client ids; nothing if this client may not read quotas."""
    try:
        found = await describe_client_quotas(cluster, [QuotaFilter("client-id", MatchType.ANY)])
    except KafkaError as error:
        logger.info("Quotas are not considered: %s", error)
        return {}
    return {
        entity[0][1] or "": values["consumer_byte_rate"]
        for entity, values in found.items()
        if "consumer_byte_rate" in values
    }
