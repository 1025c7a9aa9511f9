"""Mixed load for a node, by many clients at once: each worker repeats one task until it is stopped.

Clients connect and disconnect, also within a frame; nothing a worker creates outlives its round, so that a
node under load can be compared with one before the load.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonTopicPartition

from moldau.protocol.messages import incremental_alter_configs as alter
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.metadata import MetadataRequest
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import FETCH_VERSION, create_and_wait, fetch_request, produce_request
from tests.harness.wire.wire import Wire, request_frame

KEPT, COMPACTED = "soak-kept", "soak-compacted"
#: Configs of the permanent topics: retention is so short that the logs do not grow.
TOPICS = {
    KEPT: {"segment.ms": "1000", "retention.ms": "2000", "file.delete.delay.ms": "500"},
    COMPACTED: {
        "cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "500", "file.delete.delay.ms": "500",
    },
}  # fmt: skip
_TOPIC = 2


def new_name() -> str:
    return f"soak-{uuid.uuid4().hex[:12]}"


class Load:
    """Run every worker in its own thread for some time; `failures` are their errors."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.rounds: dict[str, int] = {}
        self.failures: list[str] = []
        self._stop = threading.Event()

    def run(self, seconds: float) -> None:
        self._stop.clear()
        workers = [
            threading.Thread(target=self._work, args=(work,), name=work.__name__) for work in self._workers()
        ]
        for worker in workers:
            worker.start()
        self._stop.wait(seconds)
        self._stop.set()
        for worker in workers:
            worker.join(60)
        self.failures += [f"{worker.name} hangs" for worker in workers if worker.is_alive()]

    def _workers(self) -> list[Callable[[], None]]:
        return [
            self.raw_clients, self.half_frames, self.bad_requests, self.abandoned_fetches,
            self.created_and_deleted_topics, self.librdkafka, self.kafka_python, self.updates,
        ]  # fmt: skip

    def _work(self, work: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                work()
            except Exception as error:
                self.failures.append(f"{work.__name__}: {error!r}")
                return
            self.rounds[work.__name__] = self.rounds.get(work.__name__, 0) + 1

    def raw_clients(self) -> None:
        """An idempotent producer and a fetch session that are never closed."""
        with Wire(self.bootstrap) as wire:
            given = wire.call(InitProducerIdRequest(transactional_id=None), 4)
            for sequence in range(5):
                records = batch(producer_id=given.producer_id, producer_epoch=0, sequence=sequence)
                _check(wire.call(produce_request(KEPT, records), 12).responses[0].partition_responses[0])
            request = fetch_request(KEPT)
            request.session_epoch = 0
            opened = wire.call(request, FETCH_VERSION)
            again = FetchRequest(session_id=opened.session_id, session_epoch=1, min_bytes=0)
            wire.call(again, FETCH_VERSION)

    def half_frames(self) -> None:
        frame = request_frame(produce_request(KEPT, batch([(None, bytes(200_000))])), 12)
        whole = len(frame).to_bytes(4, "big") + frame
        for size in (0, 2, 4, 20, 5000, len(whole) - 1):
            wire = Wire(self.bootstrap)
            wire.send(whole[:size])
            wire.abort() if size % 4 else wire.close()

    def bad_requests(self) -> None:
        for data in (
            (-1).to_bytes(4, "big", signed=True) + bytes(4),
            (2**31 - 1).to_bytes(4, "big") + bytes(4),
            (8).to_bytes(4, "big") + b"\x03\xe7" + bytes(6),
            (12).to_bytes(4, "big") + b"\x00\x03\x00\x0c" + b"\xff" * 8,
        ):
            with Wire(self.bootstrap) as wire:
                wire.send(data)
                wire.read_frame()
        with Wire(self.bootstrap) as wire:
            wire.call(produce_request(KEPT, batch(crc=1)), 12)
            wire.call(produce_request("nobody/knows", batch()), 12)
            wire.call(fetch_request(KEPT, 10**12), FETCH_VERSION)

    def abandoned_fetches(self) -> None:
        end = 10**6
        for max_wait_ms, leave in ((30_000, True), (20, False)):
            wire = Wire(self.bootstrap)
            request = fetch_request(COMPACTED, max_wait_ms=max_wait_ms)
            request.min_bytes = end
            number = wire.post(request, FETCH_VERSION)
            wire.abort() if leave else wire.answer(request, FETCH_VERSION, number)
            wire.close()

    def created_and_deleted_topics(self) -> None:
        name = new_name()
        create_and_wait(self.bootstrap, name, 2, {"retention.ms": "1000"})
        with Wire(self.bootstrap) as wire:
            more = CreatePartitionsTopic(name=name, count=3, assignments=None)
            wire.call(CreatePartitionsRequest(topics=[more], timeout_ms=5000), 3)
            for partition in range(2):
                wire.call(produce_request(name, batch([(b"k", bytes(1000))]), partition=partition), 12)
            change = alter.AlterableConfig(name="max.message.bytes", config_operation=0, value="5000")
            resource = alter.AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=[change])
            wire.call(alter.IncrementalAlterConfigsRequest(resources=[resource]), 1)
            wire.call(MetadataRequest(topics=None), 12)
            gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
            _check(wire.call(gone, 6).responses[0])

    def librdkafka(self) -> None:
        producer = Producer({
            "bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5,
            "compression.type": "lz4",
        })  # fmt: skip
        for number in range(500):
            producer.produce(KEPT, value=b"v" * 100, key=b"%d" % number)
        if producer.flush(60):
            raise AssertionError("not everything was delivered")
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "soak"})
        consumer.assign([TopicPartition(KEPT, 0, 0)])
        consumer.consume(100, timeout=1.0)
        consumer.close()

    def kafka_python(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        for _ in range(100):
            producer.send(KEPT, b"v" * 50)
        producer.flush(60)
        producer.close()
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest")
        consumer.assign([PythonTopicPartition(KEPT, 0)])
        consumer.poll(500)
        consumer.close()

    def updates(self) -> None:
        """Write the same keys repeatedly, and tombstones, for the log cleaner."""
        with Wire(self.bootstrap) as wire:
            for number in range(50):
                value = None if number % 10 == 0 else b"v" * 200
                records = [(b"key-%d" % key, value) for key in range(20)]
                _check(
                    wire.call(produce_request(COMPACTED, batch(records)), 12)
                    .responses[0]
                    .partition_responses[0]
                )
        time.sleep(0.1)


def _check(answer: Any) -> None:
    if answer.error_code:
        raise AssertionError(f"error {answer.error_code}: {answer.error_message}")
