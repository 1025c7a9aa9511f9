"""Offsets of consumer groups on the target: checkpoints, and committed offsets of groups without members.

Checkpoints come from the groups' committed offsets on the source and the offset syncs of the copy, so they
never point past copied records. After a start, checkpoints written earlier are loaded first, and do not
move back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

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
from moldau.pipelines.mirror.copy.assignment import known_topics
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

R = TypeVar("R")

#: Groups that are asked for at the same time: clusters may be far apart.
_AT_ONCE = 16
#: How long committed offsets need not be compared with those of the target.
_SETTLED_S = 600.0
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
        #: The checkpoints that are committed, and when.
        self._settled: dict[str, tuple[dict[TopicPartition, Checkpoint], float]] = {}
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
        translations = self._results(await _at_once(self.selected, self.translate))
        new = [each for found in translations.values() for each in self.checkpoints.update(found)]
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
        due = [
            group for group in self.checkpoints.groups if self._filter.allows(group) and self._is_due(group)
        ]
        states = await group_states(self._target, due)
        idle = [group for group in due if is_idle(states[group])]
        ends = await self._log_ends({where for group in idle for where in self.checkpoints.of(group)})
        self._results(await _at_once(idle, lambda group: self._commit_group(group, ends)))

    def _is_due(self, group: str) -> bool:
        """Return whether the group has new checkpoints, or its offsets may have expired on the target."""
        checkpoints, at = self._settled.get(group, ({}, 0.0))
        return checkpoints != self.checkpoints.of(group) or self._clock.monotonic() > at + _SETTLED_S

    async def _commit_group(self, group: str, ends: Mapping[TopicPartition, int]) -> None:
        checkpoints = dict(self.checkpoints.of(group))
        current = _without_errors(await list_group_offsets(self._target, group))
        wanted = offsets_to_commit(checkpoints, current, ends)
        known = all(each.downstream_offset <= ends.get(where, -1) for where, each in checkpoints.items())
        if (not wanted or await self._commit_offsets(group, wanted)) and known:
            self._settled[group] = checkpoints, self._clock.monotonic()

    async def _log_ends(self, wanted: set[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the ends of partitions that exist on the target; topics may have been deleted."""
        target = self._target
        existing = known_topics((await target.retry(lambda: target.metadata(None))).topics)
        specs = {
            where: OffsetSpec.LATEST
            for where in wanted
            if where.topic in existing and where.partition < existing[where.topic].partitions
        }
        return {
            where: listed.offset
            for where, listed in (await list_offsets(target, specs)).items()
            if not isinstance(listed, KafkaError)
        }

    def _results(self, found: Mapping[str, R | KafkaError]) -> dict[str, R]:
        """Return the results of groups, and log the errors of others; raise if there are only errors."""
        results = {group: each for group, each in found.items() if not isinstance(each, KafkaError)}
        for group, error in found.items():
            if isinstance(error, KafkaError) and not results:
                raise error
            if isinstance(error, KafkaError):
                logger.warning("%s: offsets of group %s: %s", self._flow, group, error)
        return results

    async def _commit_offsets(self, group: str, wanted: dict[TopicPartition, OffsetAndMetadata]) -> bool:
        """Return whether all offsets were committed."""
        results = await alter_group_offsets(self._target, group, wanted)
        for partition, error in results.items():
            if error is not None:
                logger.warning("%s: offset of %s, %s not committed: %s", self._flow, group, partition, error)
        return all(error is None for error in results.values())


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

    async def describe(group: str) -> GroupDescription | KafkaError:
        return (await describe_groups(cluster, [group]))[group]

    return {group: _state(found) for group, found in (await _at_once(groups, describe)).items()}


async def _at_once(
    groups: Iterable[str], work: Callable[[str], Awaitable[R | KafkaError]]
) -> dict[str, R | KafkaError]:
    """Do the work for several groups at the same time; return a result or an error for each."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(group: str) -> R | KafkaError:
        async with limit:
            try:
                return await work(group)
            except KafkaError as error:
                return error

    names = list(groups)
    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


def _state(found: GroupDescription | KafkaError) -> str:
    if isinstance(found, KafkaError):
        return "Dead" if found.code is ErrorCode.GROUP_ID_NOT_FOUND else ""
    return found.state


def _without_errors(
    offsets: dict[TopicPartition, OffsetAndMetadata | KafkaError],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {where: each for where, each in offsets.items() if not isinstance(each, KafkaError)}
