"""The batch writer while brokers are killed one after the other: no record is lost or duplicated."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from moldau.base.backoff import Backoff
from moldau.base.ids import TopicPartition
from moldau.client.wire.settings import ClientSettings, parse_addresses
from moldau.pipelines.arrow.writing import ArrowProducer
from moldau.testing import Cluster
from tests.harness.clients.feed import PARTITIONS, create
from tests.harness.clients.reading import messages
from tests.harness.nodes.leaders import TRANSACTION, coordinator_of, leaders_of
from tests.harness.waiting import eventually

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "2000",
}
ROWS = 3000


class Sending:
    """Write rows in a thread until stopped; each lot is flushed or committed with a marker."""

    def __init__(self, bootstrap: str, topic: str, *, transactional: bool) -> None:
        settings = ClientSettings(parse_addresses(bootstrap), backoff=Backoff(0.02, 0.2))
        self.lots = 0
        self._topic = topic
        self._transactional = transactional
        self._producer = ArrowProducer(
            settings, transactional_id=topic if transactional else None, batch_size=4000, compression="lz4"
        )
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._transactional:
                self._producer.init_transactions()
            while not self._stopping.is_set():
                self._lot()
        except BaseException as failure:
            self._failure = failure

    def _lot(self) -> None:
        begin = self.lots * ROWS
        rows = pa.record_batch({"value": [b"%08d" % number for number in range(begin, begin + ROWS)]})
        if not self._transactional:
            self._producer.send(rows, self._topic)
            self._producer.flush()
        else:
            self._producer.begin()
            self._producer.send(rows, self._topic)
            self._producer.commit((self._topic, TopicPartition(self._topic, 0), self.lots + 1))
        self.lots += 1

    def more(self) -> None:
        """Wait until more rows are stored."""
        wanted = self.lots + 3
        eventually(lambda: self._failure or self.lots >= wanted, timeout=60, what="more rows are stored")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> int | None:
        """Stop and return the last marker."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        marker = self._producer.marker(self._topic, TopicPartition(self._topic, 0))
        self._producer.close()
        return marker


@pytest.mark.parametrize("transactional", [False, True])
def test_batches_are_written_exactly_once_while_leaders_and_coordinators_are_killed(
    cluster: Cluster, topic: str, transactional: bool
) -> None:
    create(cluster, topic)
    sending = Sending(cluster.bootstrap_servers, topic, transactional=transactional)
    sending.more()
    victims: list[Callable[[], int]] = [
        lambda: leaders_of(cluster, topic)[0],
        lambda: coordinator_of(cluster, topic, TRANSACTION if transactional else 0),
        lambda: leaders_of(cluster, topic)[1],
    ]
    for victim in victims:
        chosen = victim()
        cluster.kill(chosen)
        sending.more()
        cluster.restart(chosen)
        cluster.wait_for_brokers()
        sending.more()
    marker = sending.stop()
    assert marker == (sending.lots if transactional else None)
    by_partition: dict[int, list[int]] = {}
    for message in messages(cluster.bootstrap_servers, topic, PARTITIONS):
        by_partition.setdefault(message.partition(), []).append(int(message.value()))
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())
    stored = sorted(number for numbers in by_partition.values() for number in numbers)
    assert stored == list(range(sending.lots * ROWS))
