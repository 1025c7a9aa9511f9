"""DescribeClientQuotas (key 48), versions 0 to 1: the quotas in the image that match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.controller.configs.quotas import describe_client_quotas
from moldau.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(
    node: Node, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    return describe_client_quotas(node.image, request)
