"""DescribeClientQuotas (key 48), versions 0 to 1 (KIP-546): the client quotas that match a filter.

- 1: flexible

Requires DESCRIBE_CONFIGS on CLUSTER.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.controller.configs.quotas import describe_client_quotas
from moldau.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.security.acl.permissions import DESCRIBE_CLUSTER_CONFIGS
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher


def handle(
    metadata: MetadataPublisher, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    if not context.allows(DESCRIBE_CLUSTER_CONFIGS):
        return DescribeClientQuotasResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, entries=None)
    return describe_client_quotas(metadata.image, request)
