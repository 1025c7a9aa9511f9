"""Clients held at a limit by confluent-kafka's producer and consumer; all of them at the same time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client.admin.client import AdminClient
from moldau.testing import Cluster
from tests.harness.wire.requests import create_and_wait

#: The measured time, after the burst that an idle client may use.
SECONDS = 10
WARM_UP_SECONDS = 2.5
VALUE = bytes(1000)


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    """A node with a short burst: two windows of a second."""
    with Cluster(config={"quota.window.num": 2}) as cluster:
        yield cluster


class Meter:
    """Counts bytes between two moments."""

    def __init__(self) -> None:
        self._begin = time.monotonic() + WARM_UP_SECONDS
        self._bytes = 0

    @property
    def running(self) -> bool:
        return time.monotonic() < self._begin + SECONDS

    def add(self, size: int) -> None:
        if time.monotonic() >= self._begin and self.running:
            self._bytes += size

    @property
    def rate(self) -> float:
        return self._bytes / SECONDS


def produce_all_the_time(properties: dict[str, Any], topic: str) -> float:
    """Produce as fast as possible; return the acknowledged bytes per second."""
    meter = Meter()
    producer = Producer(
        {**properties, "queue.buffering.max.kbytes": 4000, "batch.size": 100_000, "log_level": 0}
    )
    while meter.running:
        try:
            producer.produce(
                topic, VALUE, partition=0, on_delivery=lambda error, message: meter.add(len(message))
            )
            producer.poll(0)
        except BufferError:
            producer.poll(0.02)
    producer.purge()
    producer.flush(1)
    return meter.rate


def consume_all_the_time(properties: dict[str, Any], topic: str) -> float:
    """Consume as fast as possible, the same records again and again; return the bytes per second."""
    meter = Meter()
    consumer = Consumer(
        {
            **properties,
            "group.id": "unused",
            "fetch.message.max.bytes": 100_000,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 100,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while meter.running:
        for message in consumer.consume(100, 0.05):
            meter.add(len(message.value() or b""))
    consumer.close()
    return meter.rate


def test_clients_held_at_a_limit_get_it_within_a_tenth_over_ten_seconds(node: Cluster) -> None:
    bootstrap = node.bootstrap_servers
    for topic in ("written", "read"):
        create_and_wait(bootstrap, topic)
    _fill(bootstrap, "read", 20_000_000)
    admin = AdminClient(bootstrap)
    admin.alter_client_quotas((("client-id", "own"),), {"producer_byte_rate": 600_000.0})
    admin.alter_client_quotas((("client-id", None),), {"producer_byte_rate": 300_000.0})
    admin.alter_client_quotas((("client-id", "reader"),), {"consumer_byte_rate": 800_000.0})
    throttled: list[float] = []

    def note_throttle(text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        throttled.extend(broker["throttle"]["max"] for broker in brokers if broker["throttle"]["max"])

    def client(name: str, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": bootstrap, "client.id": name, **more}

    with ThreadPoolExecutor(5) as threads:
        own = threads.submit(
            produce_all_the_time,
            client("own", **{"statistics.interval.ms": 1000, "stats_cb": note_throttle}),
            "written",
        )
        others = [threads.submit(produce_all_the_time, client(f"other-{n}"), "written") for n in range(2)]
        reader = threads.submit(consume_all_the_time, client("reader"), "read")
        acks0 = threads.submit(produce_all_the_time, client("unacknowledged", acks=0), "written")
    assert own.result() == pytest.approx(600_000, rel=0.1)
    for other in others:
        assert other.result() == pytest.approx(300_000, rel=0.1), "each client id by itself"
    assert reader.result() == pytest.approx(800_000, rel=0.1)
    assert acks0.result() < 300_000 * 1.5, "what is in the socket counts as delivered"
    assert throttled, "librdkafka reports throttle_time_ms"
    admin.close()


def _fill(bootstrap: str, topic: str, size: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "filler", "linger.ms": 20})
    for _ in range(size // len(VALUE)):
        producer.produce(topic, VALUE, partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
