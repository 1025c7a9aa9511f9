"""DescribeClientQuotas (key 48), versions 0 to 1 (KIP-546): the client quotas that match a filter.

- 1: flexible
"""

from __future__ import annotations

from moldau.controller.configs.quotas import describe_client_quotas
from moldau.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher


def handle(
    metadata: MetadataPublisher, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    return describe_client_quotas(metadata.image, request)
