"""RenewDelegationToken (key 39), versions 1 to 2 (KIP-48): moves the expiry of a token.

- 2: flexible

Decided by the controller.

Requires no permission; only the owner and the renewers of a token may renew it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from moldau.base.errors import ErrorCode
from moldau.controller.security.tokens import renew_delegation_token
from moldau.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from moldau.server.authentication.tokens import allows_token_requests
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse | Awaitable[RenewDelegationTokenResponse]:
    if not allows_token_requests(context):
        return RenewDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
        )
    return controller.decide(context, request, partial(renew_delegation_token, requester=context.principal))
