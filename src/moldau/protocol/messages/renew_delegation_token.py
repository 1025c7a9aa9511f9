"""RenewDelegationToken (API key 39): versions 1 to 2, flexible from 2."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, bytes_, int16, int32, int64


class RenewDelegationTokenRequest(
    Message, api_key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+"
):
    hmac: bytes = bytes_("0+", secret=True)
    renew_period_ms: int = int64("0+")


class RenewDelegationTokenResponse(
    Message, api_key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+"
):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
