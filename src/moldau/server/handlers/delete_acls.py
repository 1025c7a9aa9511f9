"""DeleteAcls (key 31), versions 1 to 3 (KIP-140): SECURITY_DISABLED, because there is no authorizer yet.

- 1: resource pattern type (KIP-290)
- 2: flexible
- 3: user resources (KIP-373)
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.describe_acls import NO_AUTHORIZER


def handle(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.filters
        ]
    )
