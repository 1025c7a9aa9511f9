"""ElectLeaders (key 43), versions 0 to 2 (KIP-183): elects leaders of partitions; decided by the controller.

- 1: election type, preferred or unclean (KIP-460)
- 2: flexible
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.partitions.elections import elect_leaders
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: ElectLeadersRequest
) -> Awaitable[ElectLeadersResponse]:
    return controller.decide(context, request, elect_leaders)
