"""Client telemetry (KIP-714): librdkafka pushes, subscriptions by tools, and refused pushes on the wire."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from confluent_kafka import Consumer, Producer

from moldau.base.errors import ErrorCode
from moldau.base.ids import ZERO_UUID, format_uuid
from moldau.metrics.telemetry.otlp import decode
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.compression import GZIP, NONE, ZSTD, compress
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest
from tests.harness.otlp import gauge, payload, point, total
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.tools import ToolRun, run_tool
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire


def client_metrics(measured: MeasuredCluster, *words: str) -> ToolRun:
    servers = ("--bootstrap-server", measured.cluster.bootstrap_servers)
    return run_tool("kafka-client-metrics", *servers, *words)


@pytest.fixture
def subscribed(measured: MeasuredCluster) -> Iterator[MeasuredCluster]:
    """All clients push all metrics twice a second."""
    assert (
        client_metrics(measured, "--alter", "--name", "all", "--metrics", "*", "--interval", "500").code == 0
    )
    yield measured
    assert client_metrics(measured, "--delete", "--name", "all").code == 0


@pytest.fixture
def wire(measured: MeasuredCluster) -> Iterator[Wire]:
    with Wire(measured.cluster.bootstrap_servers) as connection:
        yield connection


def samples_of(measured: MeasuredCluster, client_id: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (dict(sample.labels), sample.value)
        for family in measured.families(open_metrics=True).values()
        for sample in family.samples
        if sample.name == name and sample.labels.get("client_id") == client_id
    ]


def ask(wire: Wire, instance_id: bytes = ZERO_UUID) -> Any:
    return wire.call(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def push(wire: Wire, instance_id: bytes, subscription_id: int, content: bytes, **fields: Any) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=instance_id, subscription_id=subscription_id, metrics=content, **fields
    )
    return ErrorCode(wire.call(request, 0).error_code)


def test_librdkafka_pushes_its_metrics(subscribed: MeasuredCluster) -> None:
    topic = f"pushed-{uuid.uuid4().hex[:8]}"
    servers = {"bootstrap.servers": subscribed.cluster.bootstrap_servers, "enable.metrics.push": True}
    producer = Producer({**servers, "client.id": f"producer-{topic}"})
    consumer = Consumer({**servers, "client.id": f"consumer-{topic}", "group.id": topic})
    consumer.subscribe([topic])
    prefix = "org_apache_kafka_"

    def pushed() -> bool:
        producer.produce(topic, b"x")
        producer.poll(0)
        consumer.poll(0.05)
        latency = samples_of(subscribed, f"producer-{topic}", f"{prefix}producer_request_latency_avg")
        rate = samples_of(subscribed, f"consumer-{topic}", f"{prefix}consumer_connection_creation_rate")
        return bool(latency and latency[0][1] > 0 and rate)

    eventually(pushed, timeout=30)
    producer.flush(10)
    assert subscribed.value("kafka_server_client_metrics_instance_count") >= 2
    consumer.close()
    assert subscribed.value("moldau_client_telemetry_malformed_total") == 0


@pytest.mark.parametrize("codec", [NONE, GZIP, ZSTD])
def test_a_push_appears_with_the_name_of_the_client(
    subscribed: MeasuredCluster, wire: Wire, codec: int
) -> None:
    answer = ask(wire)
    assert answer.error_code == 0
    assert (answer.push_interval_ms, answer.requested_metrics) == (500, ["*"])
    assert (answer.accepted_compression_types, answer.delta_temporality) == ([4, 3, 1, 2], True)
    content = payload(
        gauge("org.apache.kafka.producer.test", point(1.5, {"topic": "t"})), total("sent", point(7))
    )
    pushed = compress(codec, content)
    instance_id = answer.client_instance_id
    assert push(wire, instance_id, answer.subscription_id, pushed, compression_type=codec) is ErrorCode.NONE
    labels = {"client_instance_id": format_uuid(instance_id)}
    assert subscribed.sums("org_apache_kafka_producer_test", topic="t", **labels) == 1.5
    assert subscribed.sums("org_apache_kafka_sent_total", **labels) == 7


def test_refused_requests(subscribed: MeasuredCluster, wire: Wire) -> None:
    answer = ask(wire)
    instance_id, right = answer.client_instance_id, answer.subscription_id
    assert ask(wire, instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(wire, ZERO_UUID, right, b"") is ErrorCode.INVALID_REQUEST
    assert push(wire, instance_id, right + 1, b"") is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert ask(wire, instance_id).error_code == ErrorCode.NONE
    assert push(wire, instance_id, right, b"") is ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("content", "codec", "expected"),
    [
        (b"nonsense", NONE, ErrorCode.INVALID_RECORD),
        (b"nonsense", GZIP, ErrorCode.INVALID_RECORD),
        (compress(ZSTD, bytes(50_000_000)), ZSTD, ErrorCode.TELEMETRY_TOO_LARGE),
        (bytes(2_000_000), NONE, ErrorCode.TELEMETRY_TOO_LARGE),
        (b"", 9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
    ids=["not OTLP", "not gzip", "a bomb", "too large", "unknown codec"],
)
def test_refused_content(
    subscribed: MeasuredCluster, wire: Wire, content: bytes, codec: int, expected: ErrorCode
) -> None:
    answer = ask(wire)
    code = push(wire, answer.client_instance_id, answer.subscription_id, content, compression_type=codec)
    assert code is expected


def test_a_client_that_terminates_pushes_once_more(subscribed: MeasuredCluster, wire: Wire) -> None:
    answer = ask(wire)
    instance_id, subscription = answer.client_instance_id, answer.subscription_id
    content = payload(gauge("x", point(1)))
    assert push(wire, instance_id, subscription, content) is ErrorCode.NONE
    assert push(wire, instance_id, subscription, content, terminating=True) is ErrorCode.NONE
    assert push(wire, instance_id, subscription, content) is ErrorCode.INVALID_REQUEST


def test_a_client_counts_until_its_connection_closes(subscribed: MeasuredCluster) -> None:
    """The count fell only when 16,384 clients were known."""
    name = "kafka_server_client_metrics_instance_count"
    servers = subscribed.cluster.bootstrap_servers
    with Wire(servers) as staying:
        ask(staying)
        with Wire(servers) as leaving:
            ask(leaving)
            # Clients of other tests may leave meanwhile.
            eventually(lambda: subscribed.value(name) == 2)
        eventually(lambda: subscribed.value(name) == 1)
    eventually(lambda: subscribed.value(name) == 0)


class Collector(BaseHTTPRequestHandler):
    """An endpoint that keeps what it receives, and answers with `status`."""

    received: ClassVar[list[bytes]] = []
    status: ClassVar[int] = 200

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/x-protobuf"
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_pushes_are_forwarded_to_a_collector() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1/metrics"
    content = payload(gauge("a", point(1.5, {"topic": "t"})), resource={"group_id": "g"})
    try:
        with (
            measured_cluster(config={"metrics.otlp.endpoint": url}) as measured,
            Wire(measured.cluster.bootstrap_servers) as wire,
        ):
            answer = ask(wire)
            instance_id, subscription = answer.client_instance_id, answer.subscription_id
            pushed = compress(ZSTD, content)
            assert push(wire, instance_id, subscription, pushed, compression_type=ZSTD) is ErrorCode.NONE
            name = "moldau_client_telemetry_forwarded_total"
            eventually(lambda: measured.value(name) == 1, timeout=20)
            # The receiver reads what was pushed, with the name of the client.
            [received] = Collector.received
            assert decode(received) == decode(content)
            assert format_uuid(instance_id).encode() in received
            Collector.status = 503
            terminating = push(wire, instance_id, subscription, content, terminating=True)
            assert terminating is ErrorCode.NONE
            eventually(lambda: measured.value("moldau_client_telemetry_forward_lost_total") == 1, timeout=20)
            assert "cannot be sent to" in measured.cluster.log_file.read_text()
    finally:
        server.shutdown()
        server.server_close()


def test_only_matching_clients_are_subscribed(measured: MeasuredCluster, wire: Wire) -> None:
    words = ("--name", "other", "--metrics", "a,b", "--interval", "1000", "--match", "client_id=nobody")
    assert client_metrics(measured, "--alter", *words).out == "Altered client metrics config for other.\n"
    assert client_metrics(measured, "--list").out == "other\n"
    described = client_metrics(measured, "--describe", "--name", "other").out.splitlines()
    assert described[0] == "Client metrics configs for other are:"
    assert sorted(described[1:]) == ["  interval.ms=1000", "  match=client_id=nobody", "  metrics=a,b"]
    answer = ask(wire)
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)
    assert client_metrics(measured, "--delete", "--name", "other").code == 0
    assert client_metrics(measured, "--list").out == "\n"


def test_subscriptions_are_configs_of_the_entity_type_client_metrics(
    measured: MeasuredCluster, wire: Wire
) -> None:
    """`kafka-configs` does the same as `kafka-client-metrics`."""
    servers = ("--bootstrap-server", measured.cluster.bootstrap_servers)
    entity = ("--entity-type", "client-metrics", "--entity-name", "by-configs")

    def configs(*words: str) -> ToolRun:
        return run_tool("kafka-configs", *servers, *words)

    values = "metrics=[org.apache.kafka.producer.,a],interval.ms=2000,match=[client_software_name=nobody]"
    assert configs("--alter", *entity, "--add-config", values).code == 0
    described = configs("--describe", *entity)
    assert described.code == 0
    assert "interval.ms=2000" in described.out and "match=client_software_name=nobody" in described.out
    assert "metrics=org.apache.kafka.producer.,a" in described.out
    assert client_metrics(measured, "--list").out == "by-configs\n"
    assert ask(wire).requested_metrics == []
    assert configs("--alter", *entity, "--delete-config", "match").code == 0
    answer = ask(wire)
    assert (answer.push_interval_ms, set(answer.requested_metrics)) == (
        2000,
        {"org.apache.kafka.producer.", "a"},
    )
    refused = configs("--alter", *entity, "--add-config", "interval.ms=1")
    assert refused.code == 1 and "interval.ms" in refused.out + refused.err
    assert configs("--alter", *entity, "--delete-config", "metrics,interval.ms").code == 0
    assert client_metrics(measured, "--list").out == "\n"
    assert ask(wire).requested_metrics == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--list", "--describe"), "exactly one action"),
        (("--alter",), "One of --name or --generate-name"),
        (("--delete",), "name must be specified with --delete"),
        (("--alter", "--name", "x", "--interval", "1"), "interval must be between 100 and 3600000"),
    ],
)
def test_wrong_use_of_the_tool_is_explained(
    measured: MeasuredCluster, words: tuple[str, ...], said: str
) -> None:
    done = client_metrics(measured, *words)
    assert done.code == 1
    assert said in done.out + done.err


def test_a_node_without_metrics_does_not_announce_telemetry(bootstrap: str) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with Wire(bootstrap) as wire:
        announced = {each.api_key for each in wire.call(request, 3).api_keys}
    assert not announced & {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
