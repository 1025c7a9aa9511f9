"""CreateDelegationToken (key 38), versions 1 to 3 (KIP-48): creates a token; decided by the controller.

- 2: flexible
- 3: an owner other than the requester (KIP-373)

Requires CREATE_TOKENS on USER to create a token for another user, else no permission.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from moldau.base.errors import ErrorCode
from moldau.controller.security.tokens import create_delegation_token, empty_response, token_owner
from moldau.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from moldau.security.acl.permissions import CREATE_USER_TOKENS
from moldau.security.principal import USER
from moldau.server.authentication.tokens import allows_token_requests
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | Awaitable[CreateDelegationTokenResponse]:
    error = _refusal(context, request)
    if error is None:
        decide = partial(create_delegation_token, requester=context.principal)
        return controller.decide(context, request, decide)
    response = empty_response(request, context.principal, context.api_version)
    response.error_code = error
    response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = -1
    return response


def _refusal(context: RequestContext, request: CreateDelegationTokenRequest) -> ErrorCode | None:
    if not allows_token_requests(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    owner = token_owner(request, context.principal)
    if str(owner) != str(context.principal) and not context.allows(CREATE_USER_TOKENS, str(owner)):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if not owner.type or ":" in owner.type:
        # Such an owner could not be read again from the token's record.
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    if any(renewer.principal_type != USER for renewer in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None
