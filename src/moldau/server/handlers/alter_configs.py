"""AlterConfigs (key 33), versions 0 to 2: the older form, which replaces all of a resource's configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.controller.configs.alter import alter_configs
from moldau.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from moldau.server.dispatch.context import RequestContext
from moldau.server.own_configs import split_refused

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(node: Node, context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    request.resources, refused = split_refused(node, context, request.resources)
    response = AlterConfigsResponse()
    if request.resources:
        response = await node.controller_channel.decide(context, request, alter_configs)
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
