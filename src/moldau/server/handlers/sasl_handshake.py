"""SaslHandshake (key 17), versions 0 and 1 (KIP-43): ILLEGAL_SASL_STATE.

A handshake is part of the login, which `server/authentication/sasl.py` serves before any handler. This one
answers on listeners without SASL, and after a login whose session does not end.

- 1: tokens are sent in SaslAuthenticate requests (KIP-152)

Requires no permission.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from moldau.server.dispatch.context import RequestContext


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
