"""Configs and ACLs of mirrored topics follow those of the source.

A config that has no value of its own on the source is removed on the target, unless the source's defaults are
wanted (`use.defaults.from`). Of ACLs only those for literal topic names are copied; ALLOW WRITE is left out
and ALLOW ALL becomes ALLOW READ, because only the mirror writes to mirrored topics.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    PatternType,
    PermissionType,
    create_acls,
    describe_acls,
)
from moldau.client.admin.acls import ResourceType as AclResourceType
from moldau.client.admin.configs import (
    AlterConfig,
    AlterOperation,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    incremental_alter_configs,
)
from moldau.client.wire.cluster import Cluster
from moldau.pipelines.mirror.config.definitions import SOURCE
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.flows.topics import TargetTopics, is_copied, source_configs

logger = logging.getLogger(__name__)


class TopicSettings:
    """Copies configs and ACLs that have changed since the last time."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster, topics: TargetTopics) -> None:
        self._flow = flow
        self._selection = TopicSelection(flow)
        self._source, self._target = source, target
        self._topics = topics
        self._altered: dict[str, list[AlterConfig]] = {}
        self._without_authorizer = False

    async def sync_configs(self) -> None:
        topics = self._topics.mirrored
        if not topics:
            return
        configs = await source_configs(self._flow, self._source, list(topics))
        changes = {
            topics[name]: config_changes(self._flow, self._selection, entries)
            for name, entries in configs.items()
        }
        changed = {name: wanted for name, wanted in changes.items() if self._altered.get(name) != wanted}
        await self._alter(changed)

    async def _alter(self, changes: Mapping[str, list[AlterConfig]]) -> None:
        if not changes:
            return
        wanted = {ConfigResource(ResourceType.TOPIC, name): each for name, each in changes.items()}
        for resource, error in (await incremental_alter_configs(self._target, wanted)).items():
            if error is None:
                self._altered[resource.name] = changes[resource.name]
            else:
                logger.warning("%s: configs of %s were refused: %s", self._flow, resource.name, error)

    async def sync_acls(self) -> None:
        wanted = AclBindingFilter(resource_type=AclResourceType.TOPIC)
        try:
            found = await describe_acls(self._source, wanted)
            bindings = target_acls(self._selection, found)
            results = await create_acls(self._target, bindings) if bindings else {}
        except KafkaError as error:
            if error.code is not ErrorCode.SECURITY_DISABLED:
                raise
            self._report_no_authorizer()
            return
        for binding, failure in results.items():
            if failure is not None and failure.code is ErrorCode.SECURITY_DISABLED:
                self._report_no_authorizer()
            elif failure is not None:
                logger.warning("%s: %s was refused: %s", self._flow, binding, failure)

    def _report_no_authorizer(self) -> None:
        if not self._without_authorizer:
            self._without_authorizer = True
            logger.info("%s: a cluster has no authorizer, so no ACLs are copied", self._flow)


def config_changes(
    flow: Flow, selection: TopicSelection, entries: Iterable[ConfigEntry]
) -> list[AlterConfig]:
    """Return what makes the configs of a mirrored topic equal to those of its source."""
    changes = []
    for entry in entries:
        if not is_copied(selection, entry):
            continue
        if entry.is_default and flow["use.defaults.from"] != SOURCE:
            changes.append(AlterConfig(entry.name, AlterOperation.DELETE))
        else:
            changes.append(AlterConfig(entry.name, AlterOperation.SET, entry.value))
    return changes


def target_acls(selection: TopicSelection, bindings: Iterable[AclBinding]) -> list[AclBinding]:
    """Return the ACLs of the target for those of the source."""
    return [
        _target_acl(selection, each)
        for each in bindings
        if each.resource_type is AclResourceType.TOPIC
        and each.pattern_type is PatternType.LITERAL
        and not _allows(each, AclOperation.WRITE)
        and selection.mirrors(each.resource_name)
    ]


def _target_acl(selection: TopicSelection, binding: AclBinding) -> AclBinding:
    operation = AclOperation.READ if _allows(binding, AclOperation.ALL) else binding.operation
    return binding._replace(resource_name=selection.remote(binding.resource_name), operation=operation)


def _allows(binding: AclBinding, operation: AclOperation) -> bool:
    return binding.permission_type is PermissionType.ALLOW and binding.operation is operation
