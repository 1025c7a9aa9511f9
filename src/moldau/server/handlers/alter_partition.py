"""AlterPartition (key 56), versions 2 to 3: a leader tells the controller who is in sync."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.controller.partitions.isr import alter_partition
from moldau.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(
    node: Node, context: RequestContext, request: AlterPartitionRequest
) -> Awaitable[AlterPartitionResponse]:
    return node.local_controller.decide(context.api_version, request, alter_partition)
