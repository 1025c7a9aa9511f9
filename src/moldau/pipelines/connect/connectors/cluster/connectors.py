"""MirrorMaker 2's connectors, as they are deployed in a Connect worker: records, group offsets, heartbeats.

The worker's cluster is the target. `MirrorSourceConnector` copies topics with their configs and ACLs,
`MirrorCheckpointConnector` translates the offsets of groups, `MirrorHeartbeatConnector` emits heartbeats.
Settings and formats are MirrorMaker 2's, so that its connectors and these replace each other. The copy itself
is that of `moldau.pipelines.mirror`: whole batches, at least once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from moldau.base.clock import SystemClock
from moldau.pipelines.connect.config.definition import ConfigValue
from moldau.pipelines.connect.connectors.cluster.settings import (
    CHECKPOINT_SETTINGS,
    HEARTBEAT_SETTINGS,
    SOURCE_SERVERS,
    SOURCE_SETTINGS,
    cluster_config,
    flow_of,
)
from moldau.pipelines.connect.connectors.cluster.task import CoroutineTask, WorkerOffsets
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.sdk import (
    ExactlyOnceSupport,
    Offset,
    Partition,
    SourceConnector,
    SourceContext,
    SourceTask,
)
from moldau.pipelines.mirror.copy.task import CopyTask
from moldau.pipelines.mirror.flows.coordinator import FlowCoordinator
from moldau.pipelines.mirror.flows.heartbeats import Heartbeats
from moldau.pipelines.mirror.flows.periodic import repeat_until_done

_NUMBER, _COUNT = "task.number", "task.count"
_FIELDS: Final = {"cluster": str, "topic": str, "partition": int}


class ClusterConnector(SourceConnector):
    """What the three connectors have in common."""

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        if not any(each.errors for each in values.values()):
            try:
                flow_of(properties)
            except ConfigError as error:
                named = [name for name in values if name in str(error)]
                values[max(named, key=len, default=SOURCE_SERVERS)].errors.append(str(error))
        return values

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.UNSUPPORTED


class MirrorSourceConnector(ClusterConnector):
    config = cluster_config(SOURCE_SETTINGS)

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [
            {**self.properties, _NUMBER: str(number), _COUNT: str(max_tasks)} for number in range(max_tasks)
        ]

    def task(self) -> SourceTask:
        return CoroutineTask(_copy)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        for partition, offset in offsets:
            _check_offset(partition, offset)
        return True


class MirrorCheckpointConnector(ClusterConnector):
    config = cluster_config(CHECKPOINT_SETTINGS)

    def task(self) -> SourceTask:
        return CoroutineTask(_translate_groups)


class MirrorHeartbeatConnector(ClusterConnector):
    config = cluster_config(HEARTBEAT_SETTINGS)

    def task(self) -> SourceTask:
        return CoroutineTask(_emit_heartbeats)


def _check_offset(partition: Partition, offset: Offset | None) -> None:
    for name, kind in _FIELDS.items():
        if not isinstance(partition.get(name), kind):
            raise ConnectError(f"Source partitions need the field '{name}' of type {kind.__name__}")
    if offset is None:
        return
    position = offset.get("offset")
    if not isinstance(position, int) or isinstance(position, bool) or position < 0:
        raise ConnectError("Source offsets need the field 'offset', a number that is not negative")


async def _copy(context: SourceContext) -> None:
    """Copy the partitions of one task; the first task creates topics and keeps their configs."""
    number, count = int(context.config[_NUMBER]), int(context.config[_COUNT])
    flow, clock = flow_of(context.config), SystemClock()
    coordinator = FlowCoordinator(flow, clock)
    try:
        await repeat_until_done(f"{flow}: creating internal topics", coordinator.prepare_syncs)
        async with asyncio.TaskGroup() as group:
            offsets = WorkerOffsets(context, flow.source)
            group.create_task(CopyTask(flow, number, count, clock, offsets).run())
            if number == 0:
                group.create_task(coordinator.run_topics())
    finally:
        coordinator.close()


async def _translate_groups(context: SourceContext) -> None:
    flow = flow_of(context.config)
    coordinator = FlowCoordinator(flow, SystemClock())
    try:
        for create in (coordinator.prepare_syncs, coordinator.prepare_checkpoints):
            await repeat_until_done(f"{flow}: creating internal topics", create)
        await coordinator.run_groups()
        # Checkpoints are disabled.
        await asyncio.Event().wait()
    finally:
        coordinator.close()


async def _emit_heartbeats(context: SourceContext) -> None:
    flow = flow_of(context.config)
    if flow["emit.heartbeats.enabled"]:
        await Heartbeats(flow, SystemClock()).run()
    await asyncio.Event().wait()
