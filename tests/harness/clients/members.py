"""Members of a group, of several client libraries, that read and commit while brokers fail."""

from __future__ import annotations

from collections.abc import Callable

import kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import OffsetAndMetadata

from moldau import client as moldau
from moldau.testing import Cluster
from tests.harness.clients.feed import PARTITIONS, QUIET


class Progress:
    """The records that a member has read and the commits it knows of; committed offsets never decrease."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.positions: dict[int, int] = {}
        self.committed: dict[int, int] = {}

    def read(self, partition: int, offset: int, value: bytes) -> None:
        assert offset >= self.committed.get(partition, 0), "committed records are not read again"
        self.seen.add(int(value))
        self.positions[partition] = offset + 1

    def stored(self) -> None:
        self.committed = dict(self.positions)


class ConfluentMember:
    def __init__(self, cluster: Cluster, topic: str, group: str, protocol: str) -> None:
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
        own = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**settings, **own, **QUIET})
        self._consumer.subscribe([topic])
        self._topic = topic

    def poll(self, progress: Progress) -> None:
        for message in self._consumer.consume(100, 0.1):
            if not message.error():
                progress.read(message.partition(), message.offset(), message.value())

    def commit(self, positions: dict[int, int]) -> bool:
        offsets = [TopicPartition(self._topic, *each) for each in positions.items()]
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return False
        return all(each.error is None for each in done)

    def committed(self) -> dict[int, int]:
        asked = [TopicPartition(self._topic, each) for each in range(PARTITIONS)]
        return {each.partition: each.offset for each in self._consumer.committed(asked, 20)}

    def close(self) -> None:
        self._consumer.close()


def poll_kafka_python(consumer: kafka.KafkaConsumer) -> list[ConsumerRecord]:
    """Poll once as a member of a group.

    kafka-python 3.0 rejoins when it learns of its topics' partitions; an assignment that arrives
    between two polls is then lost. Therefore the first poll waits long enough for both.
    """
    found = consumer.poll(timeout_ms=100 if consumer.assignment() else 3000)
    return [record for records in found.values() for record in records]


class KafkaPythonMember:
    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self._consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap_servers.split(","),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            reconnect_backoff_max_ms=200,
        )
        self._topic = topic

    def poll(self, progress: Progress) -> None:
        for record in poll_kafka_python(self._consumer):
            progress.read(record.partition, record.offset, record.value)

    def commit(self, positions: dict[int, int]) -> bool:
        places = {kafka.TopicPartition(self._topic, each): each for each in positions}
        try:
            self._consumer.commit(
                {place: OffsetAndMetadata(positions[each], "", -1) for place, each in places.items()}
            )
        except kafka.errors.KafkaError:
            return False
        return True

    def committed(self) -> dict[int, int]:
        return {
            each: self._consumer.committed(kafka.TopicPartition(self._topic, each)) or 0
            for each in range(PARTITIONS)
        }

    def close(self) -> None:
        self._consumer.close()


class MoldauMember:
    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "session.timeout.ms": 6000,
        }
        own = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer: moldau.Consumer[bytes, bytes] = moldau.Consumer({**settings, **own, **QUIET})
        self._consumer.subscribe([topic])
        self._partitions = [moldau.TopicPartition(topic, each) for each in range(PARTITIONS)]

    def poll(self, progress: Progress) -> None:
        for record in self._consumer.poll(0.1):
            progress.read(record.partition, record.offset, record.value)

    def commit(self, positions: dict[int, int]) -> bool:
        offsets = {self._partitions[each]: offset for each, offset in positions.items()}
        try:
            self._consumer.commit_sync(offsets)
        except moldau.KafkaError:
            return False
        return True

    def committed(self) -> dict[int, int]:
        found = self._consumer.committed(self._partitions)
        return {place.partition: at.offset for place, at in found.items() if at is not None}

    def close(self) -> None:
        self._consumer.close()


Member = ConfluentMember | KafkaPythonMember | MoldauMember
MEMBERS: dict[str, Callable[[Cluster, str, str], Member]] = {
    "classic": lambda cluster, topic, group: ConfluentMember(cluster, topic, group, "classic"),
    "consumer": lambda cluster, topic, group: ConfluentMember(cluster, topic, group, "consumer"),
    "kafka-python": KafkaPythonMember,
    "moldau": MoldauMember,
}
