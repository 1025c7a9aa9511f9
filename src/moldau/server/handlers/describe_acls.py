"""DescribeAcls (key 29), versions 1 to 3 (KIP-140): SECURITY_DISABLED, because there is no authorizer yet.

- 1: resource pattern type (KIP-290)
- 2: flexible
- 3: user resources (KIP-373)
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from moldau.server.dispatch.context import RequestContext

NO_AUTHORIZER = "No Authorizer is configured."


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
