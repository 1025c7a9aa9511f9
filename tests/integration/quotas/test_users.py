"""Quotas of users: of the one that logged in, on every broker, and not of the brokers themselves."""

from __future__ import annotations

import time

from confluent_kafka import Producer, ThrottleEvent
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from confluent_kafka.admin import NewTopic

from moldau.base.errors import ErrorCode
from moldau.client.admin.client import AdminClient
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.testing import Cluster
from tests.harness.nodes.sasl import librdkafka, sasl_config
from tests.harness.waiting import eventually
from tests.harness.wire.requests import FETCH_VERSION, fetch_request
from tests.harness.wire.wire import Wire

DEFAULT_USER = (("user", None),)


def send(properties: dict[str, object], topic: str, size: int) -> list[ThrottleEvent]:
    """Produce in small requests until the client is throttled or everything is sent."""
    events: list[ThrottleEvent] = []
    producer = Producer({**properties, "throttle_cb": events.append, "batch.size": 20_000})
    for _ in range(size // 1000):
        producer.produce(topic, bytes(1000))
        producer.poll(0)
    deadline = time.monotonic() + 30
    while len(producer) and not events and time.monotonic() < deadline:
        producer.poll(0.05)
    producer.purge()
    producer.flush(1)
    return events


def test_quota_applies_to_the_user_that_logged_in(topic: str) -> None:
    with Cluster(config=sasl_config(extra={"quota.window.num": 2})) as node:
        bob = librdkafka(node.bootstrap_servers, user="bob", password="bob-secret")
        alice = librdkafka(node.bootstrap_servers)
        admin = ConfluentAdmin(alice)
        admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
        with AdminClient(alice) as quotas:
            quotas.alter_client_quotas((("user", "alice"),), {"producer_byte_rate": 100_000.0})
        eventually(lambda: send(alice, topic, 300_000), timeout=30, every=0, what="alice is throttled")
        assert not send(bob, topic, 300_000)


def test_quotas_do_not_throttle_replication(topic: str) -> None:
    """Without logins brokers and clients are the same user, ANONYMOUS."""
    with Cluster(brokers=3, config={"quota.window.num": 2}) as cluster:
        cluster.wait_for_brokers()
        bootstrap = cluster.bootstrap_servers
        with AdminClient(bootstrap) as admin:
            admin.alter_client_quotas(
                DEFAULT_USER,
                {
                    "consumer_byte_rate": 10_000.0,
                    "request_percentage": 1000.0,
                    "controller_mutation_rate": 1.0,
                },
            )
        _assert_mutation_rate_is_shared_by_brokers(cluster, topic)
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        begin = time.monotonic()
        for _ in range(2000):
            producer.produce(topic, bytes(1000), partition=0)
        assert producer.flush(30) == 0
        assert time.monotonic() - begin < 10, "2 MB are replicated without a quota"
        eventually(lambda: _fetch_is_throttled(cluster, topic), timeout=20, what="the consumer is throttled")


def _assert_mutation_rate_is_shared_by_brokers(cluster: Cluster, topic: str) -> None:
    wanted = CreatableTopic(name=topic, num_partitions=20, replication_factor=3)
    codes = []
    for node in cluster.brokers:
        with Wire(f"127.0.0.1:{node.port}") as wire:
            answer = wire.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
            codes.append((answer.topics[0].error_code, answer.throttle_time_ms > 0))
        wanted = CreatableTopic(name=f"{topic}-{node.id}", num_partitions=1, replication_factor=3)
    assert codes == [(0, False)] + [(int(ErrorCode.THROTTLING_QUOTA_EXCEEDED), True)] * 2


def _fetch_is_throttled(cluster: Cluster, topic: str) -> bool:
    """The leader of partition 0 is one of the brokers."""
    throttled = False
    for node in cluster.brokers:
        with Wire(f"127.0.0.1:{node.port}") as wire:
            throttled |= wire.call(fetch_request(topic), FETCH_VERSION).throttle_time_ms > 0
    return throttled
