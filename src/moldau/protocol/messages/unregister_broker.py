"""UnregisterBroker (API key 64): version 0, flexible from 0."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message, api_key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+"):
    broker_id: int = int32("0+")


class UnregisterBrokerResponse(Message, api_key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
