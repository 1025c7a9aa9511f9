"""AlterConfigs (key 33), versions 0 to 2: replaces all configs of a resource; decided by the controller.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible

Deprecated in favour of IncrementalAlterConfigs (KIP-339).

Requires for each resource ALTER_CONFIGS on TOPIC, ALTER_CONFIGS on GROUP, or ALTER_CONFIGS on CLUSTER for
brokers and client metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from moldau.base.errors import KafkaError
from moldau.controller.configs.alter import alter_configs
from moldau.controller.configs.checks import check_node_name
from moldau.controller.errors import default_error
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from moldau.security.acl.permissions import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_NAME,
    DENIED,
    Permission,
)
from moldau.server.authentication.store_changes import StoreChanges
from moldau.server.controller.authorization import Authorized, unchanged
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.settings import BROKER

#: The permission to change the configs of a resource of this type.
PERMISSIONS: dict[int, Permission] = {
    ResourceType.TOPIC: ALTER_TOPIC_CONFIGS,
    ResourceType.GROUP: ALTER_GROUP_CONFIGS,
    ResourceType.BROKER: ALTER_CLUSTER_CONFIGS,
    ResourceType.CLIENT_METRICS: ALTER_CLUSTER_CONFIGS,
}
_WRONG_BROKER = "Unexpected broker id, expected {}, but received {}"


async def handle(
    controller: ControllerChannel,
    node_id: int,
    stores: StoreChanges,
    context: RequestContext,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse:
    request.resources, refused = split_by_broker(node_id, context, request.resources)
    # The contents of a file are only for clients that may alter the configs; the controller refuses others.
    may_alter = context.allows(ALTER_CLUSTER_CONFIGS, log_denied=False)
    for each in list(request.resources) if may_alter else ():
        try:
            if each.resource_type == ResourceType.BROKER:
                configs = {config.name: config.value or "" for config in each.configs}
                await stores.check_configs(each.resource_name, configs)
        except KafkaError as error:
            request.resources.remove(each)
            refused.append((each, error))
    response = AlterConfigsResponse()
    if request.resources:
        response = await controller.decide(context, request, alter_configs, _authorize)
    response.responses = [*response.responses, *(_refused(*each) for each in refused)]
    return response


def _authorize(
    context: RequestContext, request: AlterConfigsRequest
) -> Authorized[AlterConfigsRequest, AlterConfigsResponse]:
    accepted, refused = split_by_permission(context, PERMISSIONS, request.resources)
    if not refused:
        return Authorized(request, unchanged)

    def complete(response: AlterConfigsResponse) -> AlterConfigsResponse:
        response.responses = [*response.responses, *(_refused(*each) for each in refused)]
        return response

    return Authorized(AlterConfigsRequest(resources=accepted, validate_only=request.validate_only), complete)


def _refused(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=error.code,
        error_message=error.message,
    )


class _Resource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=_Resource)


def split_by_broker(
    node_id: int, context: RequestContext, resources: Sequence[R]
) -> tuple[list[R], list[tuple[R, KafkaError]]]:
    """Split off the configs of other brokers: a broker forwards only changes of its own configs.

    A controller accepts the configs of every broker, forwarded or sent to it directly.
    """
    if context.listener.role != BROKER:
        return list(resources), []
    accepted, refused = [], []
    for resource in resources:
        try:
            if resource.resource_type == ResourceType.BROKER and resource.resource_name:
                check_node_name(resource.resource_name, node_id, _WRONG_BROKER)
            accepted.append(resource)
        except KafkaError as error:
            refused.append((resource, error))
    return accepted, refused


def split_by_permission(
    context: RequestContext, permissions: Mapping[int, Permission], resources: Sequence[R]
) -> tuple[list[R], list[tuple[R, KafkaError]]]:
    """Split off the resources whose configs the client may not change.

    Unknown resource types and duplicates are refused by the decision.
    """
    if context.listener.authorizer is None:
        return list(resources), []
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    accepted, refused = [], []
    for resource in resources:
        permission = permissions.get(resource.resource_type)
        is_cluster = permission is ALTER_CLUSTER_CONFIGS
        name = CLUSTER_NAME if is_cluster else resource.resource_name
        once = times[resource.resource_type, resource.resource_name] == 1
        if permission is None or not once or context.allows(permission, name):
            accepted.append(resource)
        else:
            refused.append((resource, default_error(DENIED[permission.resource_type])))
    return accepted, refused
