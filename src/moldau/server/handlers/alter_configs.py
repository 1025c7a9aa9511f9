"""AlterConfigs (key 33), versions 0 to 2: the older form, which replaces all of a resource's configs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(
    node: Node, context: RequestContext, request: AlterConfigsRequest
) -> Awaitable[AlterConfigsResponse]:
    return node.controller_channel.alter_configs(context, request)
