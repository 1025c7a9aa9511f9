"""Spans of Produce and Fetch: which requests have one, what it says, and what it continues."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode
from moldau.network.client import NodeConnection
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.records import Record, build_batch
from moldau.server.dispatch.tracing import RequestSampler
from tests.harness.nodes.node import connected, running_node
from tests.harness.traces import ReceivedSpan, TraceReceiver, trace_receiver
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import fetch_request, produce_request

TRACES = ["0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111"]
SPANS = ["b7ad6b7169203331", "2222222222222222"]


def traced(*parents: tuple[str, str, str]) -> bytes:
    headers = [f"00-{trace}-{span}-{flags}".encode() for trace, span, flags in parents]
    return build_batch(
        [Record(number, 0, None, b"v", [("traceparent", each)]) for number, each in enumerate(headers)]
    )


@pytest.fixture
def receiver() -> Iterator[TraceReceiver]:
    with trace_receiver() as running:
        yield running


async def create(connection: NodeConnection, *topics: str) -> None:
    wanted = [CreatableTopic(name=each, num_partitions=2, replication_factor=1) for each in topics]
    answer = await connection.call(CreateTopicsRequest(topics=wanted))
    assert {each.error_code for each in answer.topics} == {0}


async def produce(connection: NodeConnection, topic: str, records: bytes, **options: Any) -> Any:
    answer = await connection.call(produce_request(topic, records, **options), 12)
    return answer.responses[0].partition_responses[0]


def run(folder: Path, receiver: TraceReceiver, scenario: Any, **config: str) -> list[ReceivedSpan]:
    """Run a scenario with a connection to a node; return the spans, all of which a stopping node exports."""

    async def with_node() -> None:
        properties = {"traces.otlp.endpoint": receiver.endpoint, **config}
        async with running_node(folder, properties) as node, connected(node) as connection:
            await create(connection, "orders", "others")
            await scenario(connection)

    asyncio.run(with_node())
    return receiver.spans


def test_a_request_continues_the_first_sampled_trace_with_links_to_others(
    tmp_path: Path, receiver: TraceReceiver
) -> None:
    async def scenario(connection: NodeConnection) -> None:
        records = traced(
            (TRACES[1], SPANS[1], "00"), (TRACES[0], SPANS[0], "01"), (TRACES[0], SPANS[1], "01")
        )
        assert (await produce(connection, "orders", records)).base_offset == 0
        assert (await produce(connection, "orders", traced((TRACES[0], SPANS[0], "01")))).base_offset == 3
        fetched = await connection.call(fetch_request("orders", 3), 12)
        assert fetched.responses[0].partitions[0].records

    first, second, fetch = run(tmp_path, receiver, scenario)
    assert (first.name, first.kind, first.service) == ("Produce orders", "SERVER", "moldau-broker")
    assert (first.trace_id, first.parent_id) == (TRACES[0], SPANS[0])
    assert first.links == [(TRACES[1], SPANS[1]), (TRACES[0], SPANS[1])]
    assert first.resource["service.instance.id"] == "1"
    expected = {
        "messaging.system": "kafka",
        "messaging.operation.name": "Produce",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 0,
        "messaging.batch.message_count": 3,
        "client.address": "127.0.0.1",
    }
    assert expected.items() <= first.attributes.items()
    assert (second.links, second.attributes["messaging.kafka.offset"]) == ([], 3)
    assert (fetch.name, fetch.kind, fetch.failed) == ("Fetch orders", "SERVER", False)
    assert (fetch.trace_id, fetch.parent_id) == (TRACES[0], SPANS[0])
    assert fetch.attributes["messaging.kafka.offset"] == 3
    assert all(0 < span.end_ns - span.start_ns < 60_000_000_000 for span in (first, second, fetch))


def test_requests_that_have_no_span(tmp_path: Path, receiver: TraceReceiver) -> None:
    async def scenario(connection: NodeConnection) -> None:
        # The producer does not record its trace.
        await produce(connection, "orders", traced((TRACES[0], SPANS[0], "00")))
        assert (await connection.call(fetch_request("orders"), 12)).responses[0].partitions[0].records
        # No records.
        await connection.call(fetch_request("others", max_wait_ms=50), 12)
        # A follower; there is none, so it is refused.
        follower = fetch_request("orders")
        follower.replica_id = 7
        await connection.call(follower, 12)

    assert run(tmp_path, receiver, scenario) == []


def test_a_request_without_a_trace_begins_one(tmp_path: Path, receiver: TraceReceiver) -> None:
    async def scenario(connection: NodeConnection) -> None:
        await produce(connection, "orders", batch())

    [span] = run(tmp_path, receiver, scenario)
    assert (span.name, span.parent_id, span.links) == ("Produce orders", "", [])


def test_refused_and_damaged_batches_are_failed_spans(tmp_path: Path, receiver: TraceReceiver) -> None:
    refused = {
        "CORRUPT_MESSAGE": ("orders", batch(crc=1)),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": ("orders", batch(attributes=0x10)),
        "UNKNOWN_TOPIC_OR_PARTITION": ("nowhere", batch()),
    }

    async def scenario(connection: NodeConnection) -> None:
        for code, (topic, records) in refused.items():
            assert ErrorCode((await produce(connection, topic, records)).error_code).name == code
        assert (await produce(connection, "orders", batch(), partition=1)).error_code == 0

    *failed, served = run(tmp_path, receiver, scenario)
    assert [(span.name, span.failed, span.attributes["error.type"]) for span in failed] == [
        (f"Produce {topic}", True, code) for code, (topic, _) in refused.items()
    ]
    assert (served.failed, "error.type" in served.attributes) == (False, False)


def test_a_ratio_of_zero_and_the_limit_per_second_bound_the_spans(
    tmp_path: Path, receiver: TraceReceiver
) -> None:
    async def scenario(connection: NodeConnection) -> None:
        for _ in range(20):
            await produce(connection, "orders", batch())

    assert run(tmp_path / "none", receiver, scenario, **{"traces.sampling.ratio": "0"}) == []
    spans = run(tmp_path / "few", receiver, scenario, **{"traces.max.per.second": "2"})
    assert 2 <= len(spans) < 20


def test_the_sampler_takes_a_share_and_no_more_than_the_limit() -> None:
    clock = ManualClock()
    half = RequestSampler(0.5, 10_000, clock, random.Random(3))
    assert 900 < sum(half.take() for _ in range(2000)) < 1100
    limited = RequestSampler(1.0, 5, clock, random.Random(3))
    assert [sum(limited.take() for _ in range(20)) for _ in range(2)] == [5, 0]
    clock.advance(1000)
    assert sum(limited.take() for _ in range(20)) == 5
