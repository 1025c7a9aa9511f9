"""ExpireDelegationToken (key 40), versions 1 to 2 (KIP-48): removes a token, or sets when it expires.

- 2: flexible

Decided by the controller.

Requires no permission; only the owner and the renewers of a token may expire it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from moldau.base.errors import ErrorCode
from moldau.controller.security.tokens import expire_delegation_token
from moldau.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from moldau.server.authentication.tokens import allows_token_requests
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse | Awaitable[ExpireDelegationTokenResponse]:
    if not allows_token_requests(context):
        return ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
        )
    return controller.decide(context, request, partial(expire_delegation_token, requester=context.principal))
