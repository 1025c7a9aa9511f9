"""Spans of brokers and pipelines, and their export to an OTLP endpoint over HTTP.

Clients use the tracer provider of their application instead. The exporter keeps a bounded queue and sends it
in a thread of its own; while the endpoint is slow or down, further spans are dropped, and only a few of its
messages are logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from moldau.base.log_throttle import LogThrottle
from moldau.tracing.attributes import ERROR
from moldau.tracing.contexts import TraceContext

Attributes = Mapping[str, str | int]

#: Links of one span.
MAX_LINKS: Final = 32
#: The exporter logs every attempt.
_EXPORTER_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_EXPORT_SECONDS: Final = 5
_EXPORT_INTERVAL_MS: Final = 1000


class SpanExport:
    """Records finished spans of one service and exports them."""

    def __init__(self, endpoint: str, service: str, resource: Attributes | None = None) -> None:
        self._provider = TracerProvider(
            # Callers decide what is recorded, before they pay for it.
            sampler=ALWAYS_ON,
            resource=Resource.create({"service.name": service, **(resource or {})}),
        )
        logging.getLogger(_EXPORTER_LOGGER).addFilter(_Throttled())
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS)
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=_EXPORT_INTERVAL_MS)
        )
        self._tracer = self._provider.get_tracer("moldau")

    def record(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        *,
        start_ns: int,
        end_ns: int,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        error: str | None = None,
    ) -> None:
        """Record a span that has ended, with a new trace if it has no parent."""
        context = Context()
        if parent is not None:
            context = set_span_in_context(NonRecordingSpan(_span_context(parent)), context)
        span = self._tracer.start_span(
            name,
            context,
            kind,
            dict(attributes),
            [Link(_span_context(each)) for each in links[:MAX_LINKS]],
            start_time=start_ns,
        )
        if error is not None:
            span.set_attribute(ERROR, error)
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_ns)

    def close(self) -> None:
        """Export what is left, for a few seconds at most. Blocking."""
        self._provider.shutdown()


class _Throttled(logging.Filter):
    """Passes the first message about an endpoint that is down, and later ones at growing intervals."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = LogThrottle()

    def filter(self, record: logging.LogRecord) -> bool:
        return self._throttle.is_due(time.monotonic())


def _span_context(context: TraceContext) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT)
    return SpanContext(context.trace_id, context.span_id, is_remote=True, trace_flags=flags)
