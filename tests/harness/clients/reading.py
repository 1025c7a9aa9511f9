"""Reading a whole topic with librdkafka."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

SECONDS = 60


def messages(bootstrap: str, topic: str, partitions: int = 1, *, committed: bool = True) -> list[Message]:
    """Return all messages up to the end that this isolation level sees, in order within each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
    found: list[Message] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + SECONDS
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"no end after {len(found)} messages"
        for message in consumer.consume(1000, 0.1):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
    consumer.close()
    return found
