"""IncrementalAlterConfigs (key 44), versions 0 to 1: set, delete, append to and subtract from single configs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: IncrementalAlterConfigsRequest) -> Awaitable[IncrementalAlterConfigsResponse]:
    return node.controller_channel.incremental_alter_configs(context, request)
