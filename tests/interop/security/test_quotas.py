"""Client quotas: the same requests are throttled for the same time by Apache Kafka and by Moldau.

The rate of the first ten seconds follows from the bytes alone (the eleven windows count as at least ten
seconds), so that throttle times can be compared as numbers. Every test has a new user and a new client id,
because rates outlive quotas. Users log in with unsecured tokens of OAUTHBEARER, which may name any user.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.harness.apache.shared_folder import APACHE, MOLDAU
from tests.harness.security.client_settings import unsecured_token
from tests.harness.security.login import logged_in
from tests.harness.security.secured_node import SecuredNode
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import fetch_request, produce_request
from tests.harness.wire.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

KB = 1000
_TOLERANCE_MS = 250
_TOLERANCE = 0.1
_THROTTLED = 89
_BOTH_APACHE = os.environ.get("MOLDAU_TEST_BROKER") == "apache"

Entity = dict[str, str | None]


class Step(NamedTuple):
    """One response: its throttle time, what it contained, and how long it took."""

    throttle_ms: int
    result: Any
    seconds: float


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, libs: Path) -> Iterator[tuple[SecuredNode, SecuredNode]]:
    config = {"allow.everyone.if.no.acl.found": True}
    with (
        SecuredNode(tmp_path_factory.mktemp("apache"), libs, None, config) as apache,
        SecuredNode(tmp_path_factory.mktemp("moldau"), libs, None, config) as moldau,
    ):
        yield apache.start(APACHE), moldau.start(APACHE if _BOTH_APACHE else MOLDAU)


def _set_quotas(node: SecuredNode, quotas: Sequence[tuple[Entity, str, float | None]]) -> None:
    """Set quotas of entities; None removes one. An entity name of None is the default."""
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
        )
        for entity, key, value in quotas
    ]
    with logged_in(node) as wire:
        answer = wire.call(AlterClientQuotasRequest(entries=entries), 1)
        assert [each.error_code for each in answer.entries] == [0] * len(entries), answer
        wanted = len({key for _, key, value in quotas if value is not None})
        eventually(lambda: (_described(wire) > 0) == (wanted > 0), what="the quotas are applied")


def _described(wire: Wire) -> int:
    """Return the number of entities with quotas."""
    return len(wire.call(DescribeClientQuotasRequest(components=[], strict=False), 1).entries or [])


def _topic(node: SecuredNode, megabytes: int = 0) -> str:
    """Create a topic and fill it as a user without quotas."""
    name = f"quota-{uuid.uuid4().hex[:8]}"
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with logged_in(node) as wire:
        assert wire.call(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7).topics[0].error_code == 0
        eventually(lambda: _error(wire.call(produce_request(name, batch()), 12)) == 0, what="it is served")
        for _ in range(megabytes * 10):
            assert _error(wire.call(produce_request(name, _records(100 * KB)), 12)) == 0
    return name


def _records(size: int) -> bytes:
    return batch([(None, bytes(size - 80))])


def _error(response: Any) -> int:
    return int(response.responses[0].partition_responses[0].error_code)


class Client(NamedTuple):
    """A new user with a new client id."""

    user: str
    client_id: str

    @classmethod
    def new(cls) -> Client:
        return cls(f"user-{uuid.uuid4().hex[:8]}", f"client-{uuid.uuid4().hex[:8]}")

    def steps(
        self, node: SecuredNode, requests: list[tuple[Any, int]], result: Callable[[Any], Any]
    ) -> list[Step]:
        """Send the requests one after the other."""
        steps = []
        with Wire(node.address("SASL_PLAINTEXT"), timeout=60, client_id=self.client_id) as wire:
            wire.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
            token = f"n,,\x01auth=Bearer {unsecured_token(self.user)}\x01\x01".encode()
            assert wire.call(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
            for request, version in requests:
                begin = time.monotonic()
                answer = wire.call(request, version)
                steps.append(Step(answer.throttle_time_ms, result(answer), time.monotonic() - begin))
        return steps


def _alike(theirs: list[Step], ours: list[Step]) -> None:
    """Require the same contents and throttled requests, and nearly the same throttle times and delays."""
    text = f"\nApache {theirs}\nMoldau {ours}"
    assert [each.result for each in ours] == [each.result for each in theirs], text
    for first, second in zip(theirs, ours, strict=True):
        expected = first.throttle_ms
        tolerance = max(_TOLERANCE_MS, _TOLERANCE * expected)
        assert abs(expected - second.throttle_ms) <= tolerance, text
        # A muted connection answers the next request late, by the time that was announced.
        assert abs(first.seconds - second.seconds) * 1000 <= 2 * tolerance, text


#: Kafka's order of precedence: the types of the entities, and whether each is the default.
_LEVELS = [
    {"user": False, "client-id": False},
    {"user": False, "client-id": True},
    {"user": False},
    {"user": True, "client-id": False},
    {"user": True, "client-id": True},
    {"user": True},
    {"client-id": False},
    {"client-id": True},
]


def _entity(level: dict[str, bool], client: Client) -> Entity:
    names = {"user": client.user, "client-id": client.client_id}
    return {kind: None if default else names[kind] for kind, default in level.items()}


@contextmanager
def _quotas(node: SecuredNode, limits: list[tuple[Entity, str, float]]) -> Iterator[None]:
    _set_quotas(node, limits)
    try:
        yield
    finally:
        _set_quotas(node, [(entity, key, None) for entity, key, _ in limits])


@pytest.mark.parametrize("first", range(len(_LEVELS)))
def test_produce_is_throttled_by_the_quota_that_precedes(
    first: int, pair: tuple[SecuredNode, SecuredNode]
) -> None:
    """Each level has another limit, so that the throttle time shows which one applies."""
    runs = []
    for node in pair:
        topic, client = _topic(node), Client.new()
        limits = [
            (_entity(level, client), "producer_byte_rate", (20.0 + 3 * n) * KB)
            for n, level in enumerate(_LEVELS[first:])
        ]
        with _quotas(node, limits):
            requests = [(produce_request(topic, _records(60 * KB)), 12)] * 3
            requests += [(produce_request(topic, _records(180 * KB)), 12)]
            runs.append(client.steps(node, requests, _error))
    _alike(*runs)
    assert [each.throttle_ms > 1000 for each in runs[0]] == [False, False, False, True]


def test_fetch_over_the_quota_is_answered_empty(pair: tuple[SecuredNode, SecuredNode]) -> None:
    runs = []
    for node in pair:
        topic, client = _topic(node, megabytes=1), Client.new()
        with _quotas(node, [({"user": client.user}, "consumer_byte_rate", 30.0 * KB)]):
            size = len(_records(100 * KB))
            requests = [(fetch_request(topic, 1 + 2 * n, max_bytes=2 * size), 12) for n in range(2)]
            runs.append(client.steps(node, requests, _fetched))
    assert [each.result for each in runs[0]] == [each.result for each in runs[1]] == [[2 * size], []]
    for steps in runs:
        assert steps[0].throttle_ms == 0 < 1000 < steps[1].throttle_ms, runs


def _fetched(response: Any) -> list[int]:
    return [len(each.records or b"") for topic in response.responses for each in topic.partitions]


@pytest.mark.parametrize("version", [5, 7])
def test_topic_changes_are_throttled(version: int, pair: tuple[SecuredNode, SecuredNode]) -> None:
    """Newer versions are refused with THROTTLING_QUOTA_EXCEEDED, older ones wait."""
    runs = []
    for node in pair:
        client, names = Client.new(), [f"mutation-{uuid.uuid4().hex[:8]}" for _ in range(4)]
        with _quotas(node, [({"user": client.user}, "controller_mutation_rate", 3.0)]):
            requests = [(_creation(name, 20), version) for name in names]
            runs.append(client.steps(node, requests, lambda answer: answer.topics[0].error_code))
        _delete(node, names)
    _alike(*runs)
    if version > 5:
        assert _THROTTLED in [each.result for each in runs[0]]


def _creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=20_000)


def _delete(node: SecuredNode, names: list[str]) -> None:
    topics = [DeleteTopicState(name=name) for name in names]
    with logged_in(node) as wire:
        wire.call(DeleteTopicsRequest(topics=topics, timeout_ms=20_000), 6)


def test_a_request_quota_throttles_at_most_one_window(pair: tuple[SecuredNode, SecuredNode]) -> None:
    """The time of requests differs, so only the bounds are compared."""
    for node in pair:
        client = Client.new()
        with _quotas(node, [({"user": client.user}, "request_percentage", 0.0001)]):
            requests = [(MetadataRequest(topics=[]), 9)] * 2
            steps = client.steps(node, requests, lambda answer: answer.error_code)
        assert all(0 < each.throttle_ms <= 1000 for each in steps), steps
        assert 0.5 < steps[1].seconds < 3.0, steps
