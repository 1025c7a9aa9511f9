"""SaslAuthenticate (API key 36): versions 0 to 2, flexible from 2."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, bytes_, int16, int64, string


class SaslAuthenticateRequest(Message, api_key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    auth_bytes: bytes = bytes_("0+", secret=True)


class SaslAuthenticateResponse(Message, api_key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = bytes_("0+", secret=True)
    session_lifetime_ms: int = int64("1+", ignorable=True)
