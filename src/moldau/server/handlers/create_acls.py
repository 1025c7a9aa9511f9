"""CreateAcls (key 30), versions 1 to 3 (KIP-140): SECURITY_DISABLED, because there is no authorizer yet.

- 1: resource pattern type (KIP-290)
- 2: flexible
- 3: user resources (KIP-373)
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.describe_acls import NO_AUTHORIZER


def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.creations
        ]
    )
