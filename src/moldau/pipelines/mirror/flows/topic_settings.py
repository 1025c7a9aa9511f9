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
from moldau.config.definition import ConfigSource
from moldau.pipelines.mirror.config.definitions import SOURCE
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.flows.topics import TargetTopics, is_copied, topic_configs

logger = logging.getLogger(__name__)


class TopicSettings:
    """Makes configs and ACLs of mirrored topics follow the source, also after a change on the target."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster, topics: TargetTopics) -> None:
        self._flow = flow
        self._selection = TopicSelection(flow)
        self._source, self._target = source, target
        self._topics = topics
        self._without_authorizer = False

    async def sync_configs(self) -> None:
        topics = self._topics.mirrored
        if not topics:
            return
        wanted = await topic_configs(self._source, topics)
        present = await topic_configs(self._target, [topics[name] for name in wanted])
        changes = {
            remote: effective_changes(config_changes(self._flow, self._selection, wanted[name]), entries)
            for name, remote in topics.items()
            if name in wanted and (entries := present.get(remote)) is not None
        }
        await self._alter({name: each for name, each in changes.items() if each})

    async def _alter(self, changes: Mapping[str, list[AlterConfig]]) -> None:
        if not changes:
            return
        wanted = {ConfigResource(ResourceType.TOPIC, name): each for name, each in changes.items()}
        for resource, error in (await incremental_alter_configs(self._target, wanted)).items():
            if error is None:
                logger.info("%s: altered configs of %s", self._flow, resource.name)
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


def effective_changes(changes: Iterable[AlterConfig], entries: Iterable[ConfigEntry]) -> list[AlterConfig]:
    """Return the changes that alter a topic with these configs."""
    own = {each.name: each.value for each in entries if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}
    return [
        each
        for each in changes
        if (each.name in own if each.operation is AlterOperation.DELETE else own.get(each.name) != each.value)
    ]


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
