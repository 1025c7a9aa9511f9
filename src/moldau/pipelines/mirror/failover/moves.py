"""Failover and failback of a flow: collect what both clusters know, plan, and commit.

Failover moves groups from the source to the target, by the offset syncs or, if the source is not reachable,
by the last checkpoints. Failback moves groups from the target to the source, by the same offset syncs read
in the other direction, which MirrorMaker 2 cannot; groups of topics that were created on the target follow
the opposite flow, if it is enabled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.groups import alter_group_offsets, list_group_offsets, list_groups
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.records import OffsetAndMetadata
from moldau.client.wire.cluster import Cluster
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.config.properties import MirrorConfig
from moldau.pipelines.mirror.copy.stored import SyncedOffsets
from moldau.pipelines.mirror.failover.plan import MovePlan, Translation, UncopiedRecords, planned_moves
from moldau.pipelines.mirror.failover.status import flow_status
from moldau.pipelines.mirror.flows.group_offsets import (
    GroupOffsets,
    group_states,
    stored_checkpoints,
)
from moldau.pipelines.mirror.topic_log import TopicLog
from moldau.pipelines.mirror.translation.runs import OffsetRuns

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, OffsetAndMetadata]


class FlowClusters:
    """Connections to both clusters of a flow, in an `async with`."""

    def __init__(self, flow: Flow) -> None:
        self.source = Cluster(flow.source_settings("failover"))
        self.target = Cluster(flow.target_settings("failover"))

    async def __aenter__(self) -> FlowClusters:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.source.close()
        self.target.close()


async def failover(flow: Flow, clock: Clock, *, dry_run: bool) -> MovePlan:
    """Move the groups of the source to the target; return what was done, or would be."""
    async with FlowClusters(flow) as clusters:
        plan = await _failover_plan(flow, clusters, clock)
        if not dry_run:
            await _commit(clusters.target, plan)
        return plan


async def failback(config: MirrorConfig, flow: Flow, clock: Clock, *, dry_run: bool) -> MovePlan:
    """Move the groups of the target back to the source; return what was done, or would be."""
    async with FlowClusters(flow) as clusters:
        synced = SyncedOffsets(flow, clusters.source, clusters.target)
        await synced.read_new()
        translations = await _backward(flow, clusters.target, synced.runs)
        plan = await _plan(clusters.source, translations, (), ())
        if not dry_run:
            await _commit(clusters.source, plan)
    opposite = [each for each in config.flows if (each.source, each.target) == (flow.target, flow.source)]
    if not opposite:
        note = f"{flow.target}->{flow.source} is not enabled: records produced on {flow.target} stay there"
        return MovePlan(plan.moves, (), (note,))
    forward = await failover(opposite[0], clock, dry_run=dry_run)
    return MovePlan(plan.moves + forward.moves, forward.uncopied, forward.notes)


async def _failover_plan(flow: Flow, clusters: FlowClusters, clock: Clock) -> MovePlan:
    try:
        translations = await _forward(flow, clusters, clock)
        status = await flow_status(flow, clock)
        uncopied = tuple(UncopiedRecords(each.partition, each.lag) for each in status.partitions if each.lag)
        notes: tuple[str, ...] = ()
    except KafkaError as error:
        logger.warning("%s: the source is not reachable: %s", flow, error)
        checkpoints = await stored_checkpoints(flow, TopicLog(clusters.target, flow.checkpoints_topic))
        latest = {(each.group, each.partition): each for each in checkpoints}
        translations = [
            Translation(
                each.group,
                each.partition,
                each.upstream_offset,
                each.partition,
                each.downstream_offset,
                metadata=each.metadata,
            )
            for each in latest.values()
        ]
        uncopied = ()
        notes = (
            f"{flow.source} is not reachable: offsets are those of the last checkpoints, and records that "
            "were not copied are unknown",
        )
    return await _plan(clusters.target, translations, uncopied, notes)


async def _forward(flow: Flow, clusters: FlowClusters, clock: Clock) -> list[Translation]:
    """Translate the offsets of all groups of the source."""
    groups = GroupOffsets(flow, clusters.source, clusters.target, clock)
    selection = TopicSelection(flow)
    await groups.refresh_groups()
    await groups.synced.read_new()
    runs = groups.synced.runs
    translations = []
    for group in groups.selected:
        for partition, at in (await committed_offsets(clusters.source, group)).items():
            if selection.mirrors(partition.topic):
                target = TopicPartition(selection.remote(partition.topic), partition.partition)
                offset = runs.downstream(partition, at.offset)
                repeated = _repeated(runs, partition, at.offset, offset)
                translations.append(
                    Translation(group, partition, at.offset, target, offset, repeated, at.metadata)
                )
    return translations


def _repeated(runs: OffsetRuns, partition: TopicPartition, offset: int, translated: int | None) -> int:
    """Return how many copied records before the group's offset it may read again."""
    known = runs.of(partition)
    if known is None or known.end is None or translated is None:
        return 0
    back = known.upstream(translated)
    return 0 if back is None else max(0, min(offset, known.end[0]) - back)


async def _backward(flow: Flow, target: Cluster, runs: OffsetRuns) -> list[Translation]:
    """Translate the offsets of groups of the target, for topics that came from the source."""
    selection, policy = TopicSelection(flow), flow.policy
    translations = []
    for listed in await list_groups(target):
        if not flow.groups.allows(listed.group_id):
            continue
        for partition, at in (await committed_offsets(target, listed.group_id)).items():
            upstream = policy.upstream_topic(partition.topic)
            came = policy.topic_source(partition.topic) == flow.source
            if upstream is None or not came or not selection.mirrors(upstream):
                continue
            source = TopicPartition(upstream, partition.partition)
            offset = runs.upstream(source, at.offset)
            translations.append(
                Translation(listed.group_id, partition, at.offset, source, offset, metadata=at.metadata)
            )
    return translations


async def _plan(
    cluster: Cluster,
    translations: Iterable[Translation],
    uncopied: tuple[UncopiedRecords, ...],
    notes: tuple[str, ...],
) -> MovePlan:
    wanted = list(translations)
    groups = sorted({each.group for each in wanted})
    states = await group_states(cluster, groups)
    current = {group: await committed_offsets(cluster, group) for group in groups}
    specs = dict.fromkeys((each.partition for each in wanted), OffsetSpec.LATEST)
    ends = {
        partition: listed.offset
        for partition, listed in (await list_offsets(cluster, specs)).items()
        if not isinstance(listed, KafkaError)
    }
    return MovePlan(planned_moves(wanted, states, current, ends), uncopied, notes)


async def _commit(cluster: Cluster, plan: MovePlan) -> None:
    for group, offsets in plan.commits.items():
        for partition, error in (await alter_group_offsets(cluster, group, offsets)).items():
            if error is not None:
                raise KafkaError(error.code, f"The offset of {group} for {partition} was refused: {error}")


async def committed_offsets(cluster: Cluster, group: str) -> Offsets:
    found: Mapping[TopicPartition, OffsetAndMetadata | KafkaError] = await list_group_offsets(cluster, group)
    return {where: each for where, each in found.items() if not isinstance(each, KafkaError)}
