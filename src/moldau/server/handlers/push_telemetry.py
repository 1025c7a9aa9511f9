"""PushTelemetry (key 72), version 0: the metrics of a client, as OTLP (KIP-714).

Errors: INVALID_REQUEST without an instance id or after the client has announced that it terminates,
THROTTLING_QUOTA_EXCEEDED before the push interval has passed, UNKNOWN_SUBSCRIPTION_ID if the subscriptions
have changed, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE (`telemetry.max.bytes`, also decompressed),
INVALID_RECORD if the metrics cannot be read.

Served only with `metrics.port`, as Kafka serves it only with a receiver of client metrics.

Requires no permission.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.metrics.telemetry.subscriptions import ClientInstance
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from moldau.server.dispatch.context import Pending, RequestContext
from moldau.server.metrics.telemetry import ClientTelemetry


def handle(
    telemetry: ClientTelemetry, context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse | Pending:
    if request.client_instance_id == ZERO_UUID:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    # Before anything is awaited: the connection may close, which forgets its client.
    _, client = telemetry.client(request.client_instance_id, context)
    return Pending(_push(telemetry, client, context, request), keeps_frame=True)


async def _push(
    telemetry: ClientTelemetry, client: ClientInstance, context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    instance_id = request.client_instance_id
    try:
        client.check_push(telemetry.now_ms(), request.subscription_id, terminating=request.terminating)
        await telemetry.push(
            instance_id, client, context, request.compression_type, bytes(request.metrics or b"")
        )
        client.last_error = ErrorCode.NONE
    except KafkaError as error:
        client.last_error = error.code
    finally:
        client.terminating = request.terminating
    return PushTelemetryResponse(error_code=client.last_error)
