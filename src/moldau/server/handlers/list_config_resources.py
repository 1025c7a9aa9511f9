"""ListConfigResources (key 74), versions 0 to 1: the names of config resources.

- 0: client metrics subscriptions only (KIP-1000)
- 1: all resource types (KIP-1142)

Requires DESCRIBE_CONFIGS on CLUSTER.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import MetadataImage, ResourceType
from moldau.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from moldau.security.acl.permissions import DESCRIBE_CLUSTER_CONFIGS
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher

_LISTABLE = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


def handle(
    metadata: MetadataPublisher, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    context.require(DESCRIBE_CLUSTER_CONFIGS)
    types = request.resource_types or list(_LISTABLE)
    if context.api_version == 0:
        types = [ResourceType.CLIENT_METRICS]
    if not set(types) <= set(_LISTABLE):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=each)
            for each in dict.fromkeys(types)
            for name in _names(metadata.image, each)
        ]
    )


def _names(image: MetadataImage, resource_type: int) -> list[str]:
    if resource_type == ResourceType.TOPIC:
        return list(image.topics.by_name)
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker) for broker in image.cluster.brokers]
    return [resource.name for resource in image.configs if resource.type == resource_type]
