"""GetTelemetrySubscriptions (API key 71): version 0, flexible from 0."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, array, bool_, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(
    Message, api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    client_instance_id: Uuid = uuid("0+")


class GetTelemetrySubscriptionsResponse(
    Message, api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: Uuid = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = bool_("0+")
    requested_metrics: list[str] = array(string, "0+")
