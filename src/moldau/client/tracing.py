"""Spans of producers and consumers (`enable.tracing`), with OpenTelemetry's API; imported only if it is on.

The application configures OpenTelemetry: spans belong to its tracer provider, and its propagator writes and
reads the record headers, by default `traceparent` of W3C Trace Context.

A producer's span lasts from `send` to the acknowledgement. Its parent is the current span, else the span in
the headers of the record, so that a forwarded record continues its trace. A consumer has a span for each
record with a trace context, as a child of the producer's span and with a link to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context, get_current
from opentelemetry.propagators.textmap import Getter, Setter
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from moldau.base.errors import KafkaError
from moldau.client.interceptors import ConsumerInterceptor
from moldau.client.records import ConsumerRecord, Headers, ProducerRecord, RecordMetadata
from moldau.tracing import attributes

_SCOPE = "moldau.client"

#: Ends the span of a record that was acknowledged or has failed.
EndSpan = Callable[[RecordMetadata | None, KafkaError | None], None]


class _Getter(Getter[Headers]):
    """The last header of a name counts, as in Kafka's `Headers.lastHeader`."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        found: list[bytes | str] = [value for name, value in carrier if name == key and value is not None]
        if not found:
            return None
        # librdkafka also takes text as a value.
        last = found[-1]
        return [last if isinstance(last, str) else last.decode(errors="replace")]

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


class _Setter(Setter[list[tuple[str, bytes | None]]]):
    def set(self, carrier: list[tuple[str, bytes | None]], key: str, value: str) -> None:
        carrier[:] = [header for header in carrier if header[0] != key]
        carrier.append((key, value.encode()))


_GETTER, _SETTER = _Getter(), _Setter()


class ProducerTracing:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._tracer = trace.get_tracer(_SCOPE)
        self._attributes = _common(config, "send", attributes.SEND)

    def begin(self, record: ProducerRecord[Any, Any], headers: list[tuple[str, bytes | None]]) -> EndSpan:
        """Begin the span of a record and write its context into the headers."""
        details = {**self._attributes, attributes.TOPIC: record.topic}
        if record.value is None:
            details[attributes.TOMBSTONE] = True
        parent = get_current()
        if not trace.get_current_span(parent).get_span_context().is_valid:
            parent = propagate.extract(headers, parent, _GETTER)
        span = self._tracer.start_span(f"send {record.topic}", parent, SpanKind.PRODUCER, details)
        propagate.inject(headers, trace.set_span_in_context(span, parent), _SETTER)
        return lambda metadata, error: _end(span, metadata, error)


def _end(span: Span, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
    if metadata is not None:
        span.set_attribute(attributes.PARTITION, str(metadata.partition))
        if metadata.offset >= 0:
            span.set_attribute(attributes.OFFSET, metadata.offset)
    if error is not None:
        span.set_attribute(attributes.ERROR, error.code.name)
        span.set_status(Status(StatusCode.ERROR, error.message))
    span.end()


class ConsumerTracing(ConsumerInterceptor):
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._tracer = trace.get_tracer(_SCOPE)
        self._attributes = _common(config, "poll", attributes.RECEIVE)
        if config.get("group.id"):
            self._attributes[attributes.GROUP] = str(config["group.id"])

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        for record in records:
            if record.headers:
                self._received(record)
        return records

    def _received(self, record: ConsumerRecord[Any, Any]) -> None:
        parent = propagate.extract(record.headers, Context(), _GETTER)
        producer = trace.get_current_span(parent).get_span_context()
        if not producer.is_valid:
            return
        details = {
            **self._attributes,
            attributes.TOPIC: record.topic,
            attributes.PARTITION: str(record.partition),
            attributes.OFFSET: record.offset,
        }
        name = f"poll {record.topic}"
        self._tracer.start_span(name, parent, SpanKind.CONSUMER, details, [Link(producer)]).end()


def _common(config: Mapping[str, Any], name: str, operation: str) -> dict[str, str | int | bool]:
    found: dict[str, str | int | bool] = {
        attributes.SYSTEM: attributes.KAFKA,
        attributes.OPERATION_NAME: name,
        attributes.OPERATION_TYPE: operation,
    }
    if config.get("client.id"):
        found[attributes.CLIENT_ID] = str(config["client.id"])
    return found
