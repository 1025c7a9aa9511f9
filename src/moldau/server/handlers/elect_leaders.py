"""ElectLeaders (key 43), versions 0 to 2: decided by the controller."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.controller.partitions.elections import elect_leaders
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(
    node: Node, context: RequestContext, request: ElectLeadersRequest
) -> Awaitable[ElectLeadersResponse]:
    return node.controller_channel.decide(context, request, elect_leaders)
