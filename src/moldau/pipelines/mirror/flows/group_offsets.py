"""Offsets of consumer groups on the target: checkpoints, and committed offsets of groups without members.

Checkpoints come from the groups' committed offsets on the source and the offset syncs of the copy, so they
never point past copied records. After a start, checkpoints written earlier are loaded first, and do not
move back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import GroupDescription
from moldau.client.admin.groups import (
    alter_group_offsets,
    describe_groups,
    list_group_offsets,
    list_groups,
)
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.client.records import OffsetAndMetadata
from moldau.client.wire.cluster import Cluster
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.copy.stored import SyncedOffsets
from moldau.pipelines.mirror.records.checkpoint import Checkpoint, read_checkpoint
from moldau.pipelines.mirror.records.fields import MalformedRecord
from moldau.pipelines.mirror.topic_log import NewRecord, TopicAppender, TopicLog
from moldau.pipelines.mirror.translation.checkpoints import (
    Checkpoints,
    is_idle,
    offsets_to_commit,
    translated,
)

logger = logging.getLogger(__name__)

#: Group types whose offsets are committed by consumers.
_TYPES = {"", "Classic", "Consumer"}
_PROTOCOLS = {"", "consumer"}


class GroupOffsets:
    """Checkpoints and committed offsets of a flow."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster, clock: Clock) -> None:
        self.checkpoints = Checkpoints()
        self._flow = flow
        self._selection = TopicSelection(flow)
        self._filter = flow.groups
        self._source, self._target = source, target
        self._clock = clock
        self.synced = SyncedOffsets(flow, source, target)
        self._written = TopicLog(target, flow.checkpoints_topic)
        #: The groups of the source that the flow translates.
        self.selected: list[str] = []

    async def load(self) -> None:
        """Read the checkpoints that exist."""
        for checkpoint in await stored_checkpoints(self._flow, self._written):
            self.checkpoints.load(checkpoint)

    async def refresh_groups(self) -> None:
        self.selected = [
            each.group_id
            for each in await list_groups(self._source)
            if each.type in _TYPES and each.protocol_type in _PROTOCOLS and self._filter.allows(each.group_id)
        ]

    async def emit(self, writer: AsyncBatchWriter) -> None:
        """Translate the groups' offsets and write the checkpoints that have changed."""
        await self.synced.read_new()
        new: list[Checkpoint] = []
        for group in self.selected:
            new += self.checkpoints.update(await self.translate(group))
        if new:
            records = [NewRecord(each.key(), each.value()) for each in new]
            await TopicAppender(writer).append(self._flow.checkpoints_topic, records, self._clock.time_ms())
            await writer.flush()

    async def translate(self, group: str) -> list[Checkpoint]:
        """Return the current checkpoints of a group."""
        committed = _without_errors(await list_group_offsets(self._source, group))
        topics = {partition.topic for partition in committed}
        remote = {name: self._selection.remote(name) for name in topics if self._selection.mirrors(name)}
        return translated(group, committed, remote, self.synced.runs)

    async def commit(self) -> None:
        """Commit checkpoints for groups that have no members on the target."""
        for group, state in (await group_states(self._target, self.checkpoints.groups)).items():
            wanted = await self._missing_commits(group) if is_idle(state) else {}
            if wanted:
                await self._commit_offsets(group, wanted)

    async def _missing_commits(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets of checkpoints that are ahead of the group's committed offsets."""
        checkpoints = self.checkpoints.of(group)
        current = _without_errors(await list_group_offsets(self._target, group))
        specs = dict.fromkeys(checkpoints, OffsetSpec.LATEST)
        ends = {
            partition: listed.offset
            for partition, listed in (await list_offsets(self._target, specs)).items()
            if not isinstance(listed, KafkaError)
        }
        return offsets_to_commit(checkpoints, current, ends)

    async def _commit_offsets(self, group: str, wanted: dict[TopicPartition, OffsetAndMetadata]) -> None:
        for partition, error in (await alter_group_offsets(self._target, group, wanted)).items():
            if error is not None:
                logger.warning("%s: offset of %s, %s not committed: %s", self._flow, group, partition, error)


async def stored_checkpoints(flow: Flow, log: TopicLog) -> list[Checkpoint]:
    checkpoints = []
    for record in await log.read_new():
        try:
            checkpoints.append(read_checkpoint(record.key, record.value))
        except MalformedRecord as error:
            logger.warning("%s: a record of %s is ignored: %s", flow, flow.checkpoints_topic, error)
    return checkpoints


async def group_states(cluster: Cluster, groups: Iterable[str]) -> dict[str, str]:
    """Return the state of each group; Dead if it does not exist, empty if it is unknown."""
    return {group: _state(found) for group, found in (await describe_groups(cluster, groups)).items()}


def _state(found: GroupDescription | KafkaError) -> str:
    if isinstance(found, KafkaError):
        return "Dead" if found.code is ErrorCode.GROUP_ID_NOT_FOUND else ""
    return found.state


def _without_errors(
    offsets: dict[TopicPartition, OffsetAndMetadata | KafkaError],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {where: each for where, each in offsets.items() if not isinstance(each, KafkaError)}
