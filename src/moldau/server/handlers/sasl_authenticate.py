"""SaslAuthenticate (key 36), versions 0 to 2 (KIP-152): ILLEGAL_SASL_STATE.

Tokens are part of the login, which `server/authentication/sasl.py` serves before any handler. This one
answers on listeners without SASL, and after the login.

- 1: session lifetime (KIP-368)
- 2: flexible

Requires no permission.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.server.dispatch.context import RequestContext


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
