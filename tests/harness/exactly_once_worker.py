"""A read-process-write loop as a process of its own, to be killed: numbers in, their squares out, each once.

`python -m tests.harness.exactly_once_worker BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID`

Every transaction holds what was written for a few records and the offsets behind them. After an error the
worker begins again from what is committed, as a restarted one does.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, Producer

_SECONDS = 20
_QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20}


def main(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    while True:
        try:
            work(bootstrap, source, target, group, transactional_id)
        except KafkaException:
            continue


def work(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **_QUIET})
    producer.init_transactions(_SECONDS)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            **_QUIET,
        }
    )
    consumer.subscribe([source])
    try:
        while True:
            messages = [each for each in consumer.consume(20, 0.2) if not each.error()]
            if messages:
                process(producer, consumer, messages, target)
    finally:
        consumer.close()


def process(producer: Producer, consumer: Consumer, messages: list, target: str) -> None:  # type: ignore[type-arg]
    producer.begin_transaction()
    for message in messages:
        number = int(message.value())
        producer.produce(target, f"{number}:{number * number}", partition=message.partition())
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _SECONDS)
    producer.commit_transaction(_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
