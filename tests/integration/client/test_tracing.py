"""Traces from a producer through a broker to a consumer, received as OTLP; and with OpenTelemetry's own
instrumentation of other clients at either end."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from moldau.base.errors import KafkaError
from moldau.client import AsyncConsumer, AsyncProducer, Consumer, ConsumerRecord, Producer
from moldau.testing import Cluster
from tests.harness.traces import ReceivedSpan, TraceReceiver, trace_receiver
from tests.harness.waiting import eventually


class World:
    """A cluster and this process export their spans to the same receiver."""

    def __init__(self, cluster: Cluster, receiver: TraceReceiver, provider: TracerProvider) -> None:
        self.receiver = receiver
        self.provider = provider
        self.client = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "tracer"}
        self.traced = {**self.client, "enable.tracing": True}

    def reading(self, topic: str, **config: Any) -> dict[str, Any]:
        return {**self.client, "group.id": f"group-{topic}", "auto.offset.reset": "earliest", **config}

    def received(self, name: str, count: int = 1) -> list[ReceivedSpan]:
        self.provider.force_flush()
        return self.receiver.named(name, count)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with trace_receiver() as receiver:
        provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
        exporter = OTLPSpanExporter(endpoint=receiver.endpoint)
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=100))
        # A process has one; no other test sets it.
        trace.set_tracer_provider(provider)
        with Cluster(config={"traces.otlp.endpoint": receiver.endpoint}) as cluster:
            yield World(cluster, receiver, provider)
        provider.shutdown()


@pytest.fixture
def topic() -> str:
    return f"traced-{uuid.uuid4().hex[:8]}"


def read(config: dict[str, Any], topic: str, count: int = 1) -> list[ConsumerRecord[Any, Any]]:
    found: list[ConsumerRecord[Any, Any]] = []
    with Consumer[Any, Any](config) as consumer:
        consumer.subscribe([topic])
        eventually(lambda: found.extend(consumer.poll(0.5)) or len(found) >= count)
    return found


def test_producer_broker_and_consumer_are_one_trace(world: World, topic: str) -> None:
    with (
        trace.get_tracer("test").start_as_current_span(f"checkout {topic}") as checkout,
        Producer[Any, Any](world.traced) as producer,
    ):
        metadata = producer.send(topic, b"lamp", b"alice").result(20)
    [record] = read(world.reading(topic, **{"enable.tracing": "true"}), topic)
    [sent], [stored], [fetched], [polled] = (
        world.received(f"{operation} {topic}") for operation in ("send", "Produce", "Fetch", "poll")
    )
    trace_id = f"{checkout.get_span_context().trace_id:032x}"
    assert {span.trace_id for span in (sent, stored, fetched, polled)} == {trace_id}
    assert sent.parent_id == f"{checkout.get_span_context().span_id:016x}"
    assert {span.parent_id for span in (stored, fetched, polled)} == {sent.span_id}
    assert polled.links == [(trace_id, sent.span_id)]
    assert [span.service for span in (sent, stored, fetched, polled)] == [
        "shop",
        "moldau-broker",
        "moldau-broker",
        "shop",
    ]
    assert [span.kind for span in (sent, stored, fetched, polled)] == [
        "PRODUCER",
        "SERVER",
        "SERVER",
        "CONSUMER",
    ]
    [(header, value)] = record.headers
    assert header == "traceparent"
    assert (value or b"").startswith(f"00-{trace_id}-{sent.span_id}-".encode())
    position = {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": str(metadata.partition),
        "messaging.kafka.offset": metadata.offset,
        "messaging.client.id": "tracer",
    }
    assert sent.attributes == {
        **position,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
    }
    assert polled.attributes == {
        **position,
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
        "messaging.consumer.group.name": f"group-{topic}",
    }
    assert position.items() <= stored.attributes.items()
    assert sent.start_ns <= stored.start_ns <= stored.end_ns <= sent.end_ns <= polled.start_ns


def test_a_forwarded_record_continues_its_trace(world: World, topic: str) -> None:
    """Its headers name the trace, and the consumer has no current span; the old header is replaced."""
    with Producer[Any, Any](world.traced) as producer:
        producer.send(topic, b"in").result(20)
        [first] = read(world.reading(topic), topic)
        producer.send(topic, b"out", headers=[*first.headers, ("kept", b"1")]).result(20)
    before, after = world.received(f"send {topic}", 2)
    assert (after.trace_id, after.parent_id) == (before.trace_id, before.span_id)
    second = read(world.reading(topic, **{"group.id": "another"}), topic, 2)[1]
    assert [name for name, _ in second.headers] == ["kept", "traceparent"]
    assert after.span_id.encode() in dict(second.headers)["traceparent"]


def test_a_record_that_fails_is_a_failed_span(world: World, topic: str) -> None:
    config = {**world.traced, "delivery.timeout.ms": 500, "linger.ms": 0, "bootstrap.servers": "127.0.0.1:1"}
    with Producer[Any, Any](config) as producer, pytest.raises(KafkaError):
        producer.send(topic, None).result(20)
    [span] = world.received(f"send {topic}")
    assert span.failed
    assert span.attributes["error.type"] == "REQUEST_TIMED_OUT"
    assert span.attributes["messaging.kafka.message.tombstone"] is True


def test_asyncio_clients_make_spans_of_the_task_that_sends(world: World, topic: str) -> None:
    async def scenario() -> None:
        async with AsyncProducer[Any, Any](world.traced) as producer:
            with trace.get_tracer("test").start_as_current_span(f"task {topic}"):
                await producer.send(topic, b"1")
        async with AsyncConsumer[Any, Any](world.reading(topic, **{"enable.tracing": True})) as consumer:
            consumer.subscribe([topic])
            async for _ in consumer:
                return

    asyncio.run(asyncio.wait_for(scenario(), 60))
    [task], [sent], [polled] = (world.received(f"{name} {topic}") for name in ("task", "send", "poll"))
    assert (sent.parent_id, polled.parent_id) == (task.span_id, sent.span_id)


def test_our_consumer_continues_traces_of_opentelemetrys_producer(world: World, topic: str) -> None:
    plain = confluent_kafka.Producer(world.client)
    producer = ConfluentKafkaInstrumentor.instrument_producer(plain, tracer_provider=world.provider)
    producer.produce(topic, b"theirs")
    producer.flush(20)
    read(world.reading(topic, **{"enable.tracing": True}), topic)
    [sent] = world.received(f"{topic} send")
    [stored], [polled] = world.received(f"Produce {topic}"), world.received(f"poll {topic}")
    assert {stored.parent_id, polled.parent_id} == {sent.span_id}


def test_opentelemetrys_consumer_continues_traces_of_our_producer(world: World, topic: str) -> None:
    with Producer[Any, Any](world.traced) as producer:
        producer.send(topic, b"ours").result(20)
    plain = confluent_kafka.Consumer(world.reading(topic))
    plain.subscribe([topic])
    consumer = ConfluentKafkaInstrumentor.instrument_consumer(plain, tracer_provider=world.provider)
    assert eventually(lambda: consumer.poll(0.5)).value() == b"ours"
    consumer.poll(0)  # ends the span of the record
    plain.close()
    [sent], [processed] = world.received(f"send {topic}"), world.received(f"{topic} process")
    assert (sent.trace_id, sent.span_id) in processed.links
