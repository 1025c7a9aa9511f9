"""DescribeConfigs (key 32), versions 1 to 4 (KIP-133): configs of resources and the sources of their values.

- 1: synonyms (KIP-226)
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: type and documentation (KIP-569)
- 4: flexible

Requires for each resource DESCRIBE_CONFIGS on TOPIC, DESCRIBE_CONFIGS on GROUP, or DESCRIBE_CONFIGS on
CLUSTER for brokers, loggers and client metrics.
"""

from __future__ import annotations

from collections.abc import Collection

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.describe import (
    ConfigEntryDescription,
    describe_broker_configs,
    describe_broker_defaults,
    describe_client_metrics_configs,
    describe_group_configs,
    describe_topic_configs,
)
from moldau.controller.topics.lifecycle import topic_name_problem
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from moldau.security.acl.permissions import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
    Permission,
)
from moldau.server.dispatch.context import RequestContext
from moldau.server.log_levels import describe_loggers
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings

_PERMISSIONS: dict[int, Permission] = {
    ResourceType.TOPIC: DESCRIBE_TOPIC_CONFIGS,
    ResourceType.GROUP: DESCRIBE_GROUP_CONFIGS,
    ResourceType.BROKER: DESCRIBE_CLUSTER_CONFIGS,
    ResourceType.BROKER_LOGGER: DESCRIBE_CLUSTER_CONFIGS,
    ResourceType.CLIENT_METRICS: DESCRIBE_CLUSTER_CONFIGS,
}


def handle(
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_result(settings, metadata, context, request, resource) for resource in request.resources]
    )


def _result(
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        _authorize(context, resource)
        entries = _describe(settings, metadata, resource)
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = error.message
        return result
    result.configs = [
        _shaped(entry, request.include_synonyms, request.include_documentation) for entry in entries
    ]
    return result


def _authorize(context: RequestContext, resource: DescribeConfigsResource) -> None:
    """Raise an error without the permission; unknown resource types are refused later."""
    permission = _PERMISSIONS.get(resource.resource_type)
    if permission is DESCRIBE_CLUSTER_CONFIGS:
        context.require(permission)
    elif permission is not None:
        context.require(permission, resource.resource_name)


def _describe(
    settings: NodeSettings, metadata: MetadataPublisher, resource: DescribeConfigsResource
) -> list[ConfigEntryDescription]:
    name, names = resource.resource_name, resource.configuration_keys
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _topic(settings, metadata, name, names)
        case ResourceType.BROKER:
            if not name:
                return describe_broker_defaults(settings.config, names)
            _check_broker(settings.config.node_id, name)
            return describe_broker_configs(settings.config, names)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            _check_broker(settings.config.node_id, name)
            return describe_loggers(names)
        case ResourceType.GROUP:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return describe_group_configs(
                metadata.image.config(ResourceType.GROUP, name), settings.config, names
            )
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
                )
            return describe_client_metrics_configs(
                metadata.image.config(ResourceType.CLIENT_METRICS, name), names
            )
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")


def _topic(
    settings: NodeSettings, metadata: MetadataPublisher, name: str, names: Collection[str] | None
) -> list[ConfigEntryDescription]:
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name not in metadata.image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return describe_topic_configs(metadata.image.topic_config(name), settings.config, names)


def _check_broker(node_id: int, name: str) -> None:
    if not name.lstrip("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )


def _shaped(
    entry: ConfigEntryDescription, include_synonyms: bool, include_documentation: bool
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.type,
        documentation=entry.documentation if include_documentation else None,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if include_synonyms else ())
        ],
    )
