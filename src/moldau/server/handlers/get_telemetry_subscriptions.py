"""GetTelemetrySubscriptions (key 71), version 0: which metrics a client is to push, and how often (KIP-714).

A client without an instance id gets one. A client that asks again before its push interval has passed
receives THROTTLING_QUOTA_EXCEEDED, unless its last push failed because of its subscription or codec.

Served only with `metrics.port`, as Kafka serves it only with a receiver of client metrics.

Requires no permission.
"""

from __future__ import annotations

from moldau.base.errors import KafkaError
from moldau.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from moldau.server.dispatch.context import RequestContext
from moldau.server.metrics.telemetry import ACCEPTED_COMPRESSION, ClientTelemetry


def handle(
    telemetry: ClientTelemetry, context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    instance_id, client = telemetry.client(request.client_instance_id, context)
    try:
        client.check_ask(telemetry.now_ms())
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=client.subscription_id,
        accepted_compression_types=list(ACCEPTED_COMPRESSION),
        push_interval_ms=client.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(client.metrics),
    )
