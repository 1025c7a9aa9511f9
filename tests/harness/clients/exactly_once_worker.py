"""A read-process-write loop in a separate process that can be killed: it squares numbers, each exactly once.

`python -m tests.harness.clients.exactly_once_worker BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID`

Every transaction contains the results of a few records and their offsets. After an error the
worker continues from the committed offsets, like a restarted one.

librdkafka 2.16 (its issues 5511 and 5456) may block forever in `send_offsets_to_transaction`, whatever the
timeout, if the coordinator of the group has just left the cluster. A worker that hangs is therefore
restarted, as an operator would do.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Message, Producer

_SECONDS = 20
#: Longer than any call may take.
_STANDSTILL_S = 25
_QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20}


class Watch:
    """Restart the process with the same id when it makes no progress."""

    def __init__(self) -> None:
        self.moved()
        threading.Thread(target=self._run, daemon=True).start()

    def moved(self) -> None:
        self._moved = time.monotonic()

    def _run(self) -> None:
        while time.monotonic() - self._moved < _STANDSTILL_S:
            time.sleep(1)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def main(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    watch = Watch()
    while True:
        watch.moved()
        try:
            work(watch, bootstrap, source, target, group, transactional_id)
        except KafkaException:
            continue


def work(watch: Watch, bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
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
            watch.moved()
            messages = [each for each in consumer.consume(20, 0.2) if not each.error()]
            if messages:
                process(watch, producer, consumer, messages, target)
    finally:
        consumer.close()


def process(
    watch: Watch, producer: Producer, consumer: Consumer, messages: list[Message], target: str
) -> None:
    producer.begin_transaction()
    for message in messages:
        number = int(message.value() or b"")
        producer.produce(target, f"{number}:{number * number}", partition=message.partition())
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _SECONDS)
    watch.moved()
    producer.commit_transaction(_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
