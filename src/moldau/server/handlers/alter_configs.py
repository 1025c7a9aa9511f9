"""AlterConfigs (key 33), versions 0 to 2: replaces all configs of a resource; decided by the controller.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible

Deprecated in favour of IncrementalAlterConfigs (KIP-339).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from moldau.base.errors import KafkaError
from moldau.controller.configs.alter import alter_configs
from moldau.controller.configs.checks import check_node_name
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.settings import BROKER

_WRONG_BROKER = "Unexpected broker id, expected {}, but received {}"


async def handle(
    controller: ControllerChannel, node_id: int, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    request.resources, refused = split_by_broker(node_id, context, request.resources)
    response = AlterConfigsResponse()
    if request.resources:
        response = await controller.decide(context, request, alter_configs)
    response.responses += [
        AlterConfigsResourceResponse(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
        for each, error in refused
    ]
    return response


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
