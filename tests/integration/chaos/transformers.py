"""Exactly-once copies from topic to topic: records and consumed offsets in one transaction."""

from __future__ import annotations

import threading
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.integration.chaos.access import Access
from tests.integration.chaos.history import History
from tests.integration.chaos.readers import Log, Reader, settings
from tests.integration.chaos.writers import retry

OUT = "chaos-out"
_STANDSTILL_S = 15.0


class Transformer(Reader):
    """Copies the topic to another one, to the same partitions, in transactions. Two of them share a group.

    The copying is done by a thread that is replaced when it hangs: librdkafka 2.16 may never return
    from `send_offsets_to_transaction`, whatever its timeout, when the group's coordinator has left the
    metadata during the call. The new producer fences the old one.
    """

    group = "chaos-transform"

    def run(self) -> None:
        while not self.stopping.is_set():
            copier = _Copier(self)
            copier.start()
            while not self.stopping.is_set() and time.monotonic() - copier.moved < _STANDSTILL_S:
                copier.join(0.2)
            copier.stopping.set()
            copier.join(_STANDSTILL_S)
            if copier.is_alive():
                self.history.note(f"{self.name} is stuck in its client and is replaced")


class _Copier(threading.Thread):
    def __init__(self, owner: Transformer) -> None:
        super().__init__(name=owner.name, daemon=True)
        self.owner = owner
        self.history = owner.history
        self.stopping = threading.Event()
        #: The time of its last progress.
        self.moved = time.monotonic()

    def run(self) -> None:
        producer = self._new_producer()
        limits = {"max.poll.interval.ms": 15_000}
        consumer = Consumer({**settings(self.owner.access, self.owner.group, "read_committed"), **limits})
        consumer.subscribe([self.owner.topic])
        try:
            while not self.stopping.is_set():
                messages = [each for each in consumer.consume(100, 0.2) if each.error() is None]
                if messages:
                    producer = self._copy(consumer, producer, messages)
                self.moved = time.monotonic()
        except KafkaException as error:
            # A copier that was replaced because its client was stuck may fail after the cluster has stopped.
            if not self.stopping.is_set():
                raise
            self.history.note(f"{self.name}: {error.args[0]}")
        finally:
            consumer.close()

    def _copy(self, consumer: Consumer, producer: Producer, messages: list[Message]) -> Producer:
        try:
            producer.begin_transaction()
            for message in messages:
                producer.produce(OUT, message.value(), partition=message.partition() or 0)
                producer.poll(0)
            offsets, metadata = consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            retry(lambda: producer.send_offsets_to_transaction(offsets, metadata, 10), self.stopping)
            retry(lambda: producer.commit_transaction(10), self.stopping)
            return producer
        except KafkaException as error:
            self.history.note(f"{self.name}: {error.args[0]}")
            producer = self._undo(producer, error.args[0])
            self._back_to_committed(consumer)
            return producer

    def _undo(self, producer: Producer, reason: confluent_kafka.KafkaError) -> Producer:
        if reason.txn_requires_abort():
            try:
                retry(lambda: producer.abort_transaction(10), self.stopping)
                return producer
            except KafkaException as failed:
                self.history.note(f"{self.name}: not even aborted: {failed.args[0]}")
        return self._new_producer()

    def _back_to_committed(self, consumer: Consumer) -> None:
        """Seek back to the committed offsets."""
        while not self.stopping.is_set():
            try:
                for each in consumer.committed(consumer.assignment(), timeout=10):
                    consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
                return
            except KafkaException as error:
                self.history.note(f"{self.name}: cannot go back yet: {error.args[0]}")
                consumer.poll(0.1)

    def _new_producer(self) -> Producer:
        producer = Producer(
            {
                **self.owner.access.librdkafka(),
                "transactional.id": self.name,
                "transaction.timeout.ms": 20_000,
                "message.timeout.ms": 20_000,
            }
        )
        retry(lambda: producer.init_transactions(10), self.stopping)
        return producer


def wait_copied(history: History, access: Access, topic: str, log: Log) -> None:
    """Wait until the group has read all of this, with a deadline; missing records are then a violation."""
    consumer = Consumer(settings(access, Transformer.group, "read_committed"))
    ends = {partition: records[-1][0] + 1 for partition, records in log.items() if records}
    deadline = time.monotonic() + 90
    try:
        while (behind := _behind(consumer, topic, ends)) and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        consumer.close()
    if behind:
        history.violation(f"long after the last fault {Transformer.group} is behind: {behind}")


def _behind(consumer: Consumer, topic: str, ends: dict[int, int]) -> dict[int, str]:
    asked = [TopicPartition(topic, partition) for partition in ends]
    try:
        found = consumer.committed(asked, timeout=20)
    except KafkaException as error:
        # Offsets of an undecided transaction are not returned.
        return {-1: str(error.args[0])}
    return {
        each.partition: f"{each.offset} of {ends[each.partition]}"
        for each in found
        if each.offset < ends[each.partition]
    }
