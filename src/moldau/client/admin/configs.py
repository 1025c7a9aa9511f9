"""Configs of topics, brokers, groups and other resources: describe, alter, list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.config.definition import ConfigSource
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from moldau.protocol.schema import Message


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A resource with configs; an empty broker name stands for the cluster-wide default."""

    type: ResourceType
    name: str


class AlterConfig(NamedTuple):
    name: str
    operation: AlterOperation
    value: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


async def describe_configs(
    cluster: Cluster,
    resources: Sequence[ConfigResource],
    *,
    include_synonyms: bool = False,
    include_documentation: bool = False,
) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
    """Return configs in the broker's order. Those of a broker are requested from itself."""
    results: dict[ConfigResource, list[ConfigEntry] | KafkaError] = {}
    for node, group in _by_node(resources).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=r.type, resource_name=r.name, configuration_keys=None)
                for r in group
            ],
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        answer: DescribeConfigsResponse = await _ask(cluster, node, request)
        for result in answer.results:
            resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
            if result.error_code:
                results[resource] = error_of(result.error_code, result.error_message)
            else:
                results[resource] = [_entry(config) for config in result.configs]
    return results


async def incremental_alter_configs(
    cluster: Cluster, changes: Mapping[ConfigResource, Iterable[AlterConfig]], *, validate_only: bool = False
) -> dict[ConfigResource, KafkaError | None]:
    results: dict[ConfigResource, KafkaError | None] = {}
    for node, group in _by_node(list(changes)).items():
        request = IncrementalAlterConfigsRequest(
            resources=[_alteration(resource, changes[resource]) for resource in group],
            validate_only=validate_only,
        )
        answer: IncrementalAlterConfigsResponse = await _ask(cluster, node, request)
        for result in answer.responses:
            resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
            failed = result.error_code != ErrorCode.NONE
            results[resource] = error_of(result.error_code, result.error_message) if failed else None
    return results


async def list_config_resources(cluster: Cluster, types: Sequence[ResourceType] = ()) -> list[ConfigResource]:
    """Return resources with configs of their own, of all types by default."""
    request = ListConfigResourcesRequest(resource_types=list(types))
    answer: ListConfigResourcesResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code)
    return [ConfigResource(ResourceType(r.resource_type), r.resource_name) for r in answer.config_resources]


async def _ask(cluster: Cluster, node: int | None, request: Message) -> Any:
    if cluster.settings.controllers:
        return await cluster.retry(lambda: cluster.ask_controller(request))
    if node is None:
        return await cluster.retry(lambda: cluster.ask_any(request))
    return await cluster.retry(lambda: cluster.ask_node(node, request))


def _by_node(resources: Sequence[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        own = resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name
        groups.setdefault(int(resource.name) if own else None, []).append(resource)
    return groups


def _alteration(resource: ConfigResource, changes: Iterable[AlterConfig]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
            for change in changes
        ],
    )


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        _source(config.config_source),
        config.read_only,
        config.is_sensitive,
        tuple(ConfigSynonym(s.name, s.value, _source(s.source)) for s in config.synonyms),
        config.documentation,
    )


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
