"""What a client over its quota receives: a response at once, then nothing for its `throttle_time_ms`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.client.admin.client import AdminClient
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.metadata import MetadataRequest
from tests.harness.clients.share import ShareClient, acquired
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import (
    FETCH_VERSION,
    METADATA_VERSION,
    PRODUCE_VERSION,
    create_and_wait,
    fetch_request,
    produce_request,
)
from tests.harness.wire.wire import Wire
from tests.integration.conftest import Node, new_node

METADATA = MetadataRequest(topics=[])
#: The client id of `Wire`.
RAW = (("client-id", "raw"),)
#: An idle client may use the limit of one second at once.
CONFIG = {"quota.window.num": 2, "controller.quota.window.num": 2}
THROTTLED = int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with new_node(config=CONFIG) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(node: Node) -> Iterator[AdminClient]:
    with AdminClient(node.bootstrap_servers) as client:
        yield client


@pytest.fixture
def wire(node: Node) -> Iterator[Wire]:
    with Wire(node.bootstrap_servers) as connection:
        yield connection


@contextmanager
def quota(admin: AdminClient, key: str, limit: float) -> Iterator[None]:
    admin.alter_client_quotas(RAW, {key: limit})
    try:
        yield
    finally:
        admin.alter_client_quotas(RAW, {key: None})


def records(size: int) -> bytes:
    return batch([(None, bytes(size))])


def seconds_until_answered(wire: Wire) -> float:
    begin = time.monotonic()
    wire.call(METADATA, METADATA_VERSION)
    return time.monotonic() - begin


def test_producer_is_answered_at_once_and_then_muted(
    node: Node, admin: AdminClient, wire: Wire, topic: str
) -> None:
    create_and_wait(node.bootstrap_servers, topic)
    with quota(admin, "producer_byte_rate", 500_000.0):
        begin = time.monotonic()
        response = wire.call(produce_request(topic, records(800_000)), PRODUCE_VERSION)
        assert time.monotonic() - begin < 0.5
        assert response.throttle_time_ms == pytest.approx(600, abs=30)
        assert seconds_until_answered(wire) == pytest.approx(response.throttle_time_ms / 1000, abs=0.4)
        with Wire(node.bootstrap_servers) as other:
            assert seconds_until_answered(other) < 0.5, "a request that is not limited is not throttled"


def test_unacknowledged_produce_mutes_the_connection(
    node: Node, admin: AdminClient, wire: Wire, topic: str
) -> None:
    create_and_wait(node.bootstrap_servers, topic)
    with quota(admin, "producer_byte_rate", 500_000.0):
        wire.post(produce_request(topic, records(900_000), acks=0), PRODUCE_VERSION)
        assert seconds_until_answered(wire) > 0.6


def test_consumer_over_its_quota_receives_an_empty_response(
    node: Node, admin: AdminClient, wire: Wire, topic: str
) -> None:
    create_and_wait(node.bootstrap_servers, topic)
    for _ in range(4):
        wire.call(produce_request(topic, records(150_000)), PRODUCE_VERSION)
    with quota(admin, "consumer_byte_rate", 400_000.0):
        first = wire.call(fetch_request(topic), FETCH_VERSION)
        assert 300_000 < len(first.responses[0].partitions[0].records) <= 400_000, "not more than a second's"
        assert first.throttle_time_ms == 0
        second = wire.call(fetch_request(topic, 2), FETCH_VERSION)
        assert (second.responses, second.session_id, second.error_code) == ([], 0, 0)
        assert 0 < second.throttle_time_ms < 1000
        eventually(
            lambda: wire.call(fetch_request(topic, 2), FETCH_VERSION).responses,
            timeout=5,
            what="the client receives records again",
        )


def test_share_group_member_over_its_quota_acquires_nothing(
    node: Node, admin: AdminClient, wire: Wire, topic: str
) -> None:
    """Apache Kafka acquires the records and answers without them; they stay locked for a while."""
    create_and_wait(node.bootstrap_servers, topic)
    member = ShareClient(node.bootstrap_servers, topic, [topic])
    member.join()
    member.fetch()
    for _ in range(4):
        wire.call(produce_request(topic, records(150_000)), PRODUCE_VERSION)
    with quota(admin, "consumer_byte_rate", 250_000.0):
        seen: list[int] = []
        throttled = False
        while len(seen) < 4:
            response = member.fetch()
            throttled |= response.throttle_time_ms > 0
            for _, _, first, last, deliveries in acquired(response):
                assert deliveries == 1, "no record was acquired and not delivered"
                seen += range(first, last + 1)
        assert seen == [0, 1, 2, 3]
        assert throttled
    member.close()


def test_request_time_is_limited_and_throttles_at_most_a_window(admin: AdminClient, wire: Wire) -> None:
    with quota(admin, "request_percentage", 0.5):
        throttle_ms = eventually(
            lambda: wire.call(MetadataRequest(topics=None), METADATA_VERSION).throttle_time_ms,
            every=0,
            what="the client is throttled",
        )
        assert 0 < throttle_ms <= 1000
        assert seconds_until_answered(wire) >= throttle_ms / 1000 - 0.05


def test_removed_quota_ends_the_mute_at_once(
    node: Node, admin: AdminClient, wire: Wire, topic: str, on_moldau: bool
) -> None:
    create_and_wait(node.bootstrap_servers, topic)
    with quota(admin, "producer_byte_rate", 1000.0):
        response = wire.call(produce_request(topic, records(500_000)), PRODUCE_VERSION)
        assert response.throttle_time_ms > 400_000
        wire.post(METADATA, METADATA_VERSION)
        assert wire.is_silent_for(0.3)
    assert wire.is_silent_for(3) is not on_moldau


def create_topics(node: Node, name: str, version: int, partitions: int = 15) -> Any:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    with Wire(node.bootstrap_servers) as wire:
        return wire.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), version)


def _created(node: Node, name: str, partitions: int) -> Any:
    """Create a topic; return the response, or None if the quota is exhausted."""
    response = create_topics(node, name, 7, partitions)
    return response if response.topics[0].error_code == 0 else None


def test_exhausted_mutation_rate_refuses_changes(node: Node, admin: AdminClient, topic: str) -> None:
    """The limit of 5 partitions per second allows 10 at once; 15 exhaust it for a second."""
    with quota(admin, "controller_mutation_rate", 5.0):
        created = eventually(lambda: _created(node, topic, 15), what="the quota of earlier tests is refilled")
        assert created.throttle_time_ms == 0
        refused = create_topics(node, f"{topic}-2", 7)
        assert refused.topics[0].error_code == THROTTLED
        assert refused.topics[0].error_message is None
        assert 0 < refused.throttle_time_ms <= 1000
        with Wire(node.bootstrap_servers) as wire:
            grown = CreatePartitionsTopic(name=topic, count=20, assignments=None)
            answer = wire.call(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)
            assert answer.results[0].error_code == THROTTLED
        with Wire(node.bootstrap_servers) as wire:
            gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
            assert wire.call(gone, 6).responses[0].error_code == THROTTLED
        tolerated = create_topics(node, f"{topic}-3", 5)
        assert tolerated.topics[0].error_code == 0, "older clients do not know the error"
        assert tolerated.throttle_time_ms > 3000


def test_refused_change_mutes_the_connection(node: Node, admin: AdminClient, topic: str) -> None:
    with quota(admin, "controller_mutation_rate", 5.0), Wire(node.bootstrap_servers) as wire:
        eventually(lambda: _created(node, topic, 13), what="the quota of earlier tests is refilled")
        wanted = CreatableTopic(name=f"{topic}-2", num_partitions=1, replication_factor=1)
        refused = wire.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        assert refused.topics[0].error_code == THROTTLED
        assert seconds_until_answered(wire) >= refused.throttle_time_ms / 1000 - 0.05
        again = wire.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        assert again.topics[0].error_code == 0, "after the throttle time the change is accepted"
