"""PushTelemetry (API key 72): version 0, flexible from 0."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, bool_, bytes_, int8, int16, int32, uuid


class PushTelemetryRequest(Message, api_key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+"):
    client_instance_id: Uuid = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = bool_("0+")
    compression_type: int = int8("0+")
    metrics: bytes = bytes_("0+")


class PushTelemetryResponse(Message, api_key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
