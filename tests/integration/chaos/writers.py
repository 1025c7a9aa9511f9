"""Producers of several libraries, each a thread that writes steadily and records acknowledgements."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import confluent_kafka
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from kafka import KafkaProducer

from tests.integration.chaos.access import REQUEST_TIMEOUT_MS, Access
from tests.integration.chaos.history import History, Outcome, Transaction

PAUSE_S = 0.03
#: Far longer than any fault: an idempotent producer must not lose records.
DELIVERY_TIMEOUT_MS = 150_000
_PER_TURN = 3


class Writer(threading.Thread):
    def __init__(self, name: str, access: Access, topic: str, partitions: int, history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.access = access
        self.topic = topic
        self.history = history
        #: The name of the writer in its records.
        self.identity = name
        self.stopping = threading.Event()
        self._partitions = itertools.cycle(range(partitions))
        self._written: Counter[int] = Counter()

    def next_record(self, transaction: str = "") -> tuple[int, bytes]:
        """Return a partition and a value with the writer's next number there."""
        partition = next(self._partitions)
        self._written[partition] += 1
        return partition, f"{self.identity}/{transaction}{self._written[partition]}".encode()

    def finish(self, timeout: float) -> None:
        self.stopping.set()
        self.join(timeout)
        if self.is_alive():
            self.history.violation(f"{self.name} was not done {timeout:g} s after the last fault")


class LibrdkafkaWriter(Writer):
    """A librdkafka producer, `idempotent` or plain, with acks=all and in order."""

    idempotent = True

    def run(self) -> None:
        producer = confluent_kafka.Producer(
            {
                **self.access.librdkafka(),
                "acks": "all",
                "enable.idempotence": self.idempotent,
                "max.in.flight.requests.per.connection": 5 if self.idempotent else 1,
                "message.timeout.ms": DELIVERY_TIMEOUT_MS,
                "linger.ms": 5,
                "debug": "eos",
                "log_level": 7,
            },
            logger=self._listener(),
        )
        while not self.stopping.is_set():
            for _ in range(_PER_TURN):
                partition, value = self.next_record()
                producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
            producer.poll(PAUSE_S)
        left = producer.flush(60)
        if left:
            self.history.violation(f"{self.name}: {left} records were neither acknowledged nor refused")

    def _listener(self) -> logging.Logger:
        """Record when librdkafka starts a new epoch, and why."""
        logger = logging.Logger(self.name)
        handler = logging.Handler()
        handler.addFilter(lambda record: "bump" in record.getMessage().lower())
        handler.emit = lambda record: self.history.note(f"{self.name}: {record.getMessage()}")  # type: ignore[method-assign]
        logger.addHandler(handler)
        return logger

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            if self.idempotent:
                self.history.violation(f"{self.name}: {message.value()!r} was given up: {error}")
            return
        offset = message.offset()
        known = None if offset is None or offset < 0 else offset
        self.history.acknowledge(self.name, message.partition() or 0, known, bytes(message.value() or b""))


class PlainLibrdkafkaWriter(LibrdkafkaWriter):
    idempotent = False


class KafkaPythonWriter(Writer):
    idempotent = True

    def run(self) -> None:
        producer = KafkaProducer(
            **self.access.kafka_python(),
            client_id=self.name,
            acks="all",
            enable_idempotence=self.idempotent,
            max_in_flight_requests_per_connection=5 if self.idempotent else 1,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            retry_backoff_ms=50,
            reconnect_backoff_max_ms=500,
            max_block_ms=60_000,
        )
        while not self.stopping.is_set():
            for _ in range(_PER_TURN):
                partition, value = self.next_record()
                future = producer.send(self.topic, value, partition=partition)
                future.add_callback(self._delivered, value)
                future.add_errback(self._failed, value)
            time.sleep(PAUSE_S)
        producer.flush(timeout=60)
        producer.close(timeout=5)

    def _delivered(self, value: bytes, metadata: Any) -> None:
        offset = metadata.offset if metadata.offset >= 0 else None
        self.history.acknowledge(self.name, metadata.partition, offset, value)

    def _failed(self, value: bytes, error: BaseException) -> None:
        if self.idempotent:
            self.history.violation(f"{self.name}: {value!r} was given up: {error!r}")


class AiokafkaWriter(Writer):
    """An aiokafka producer. It drops a batch after its request timeout, and then every batch of the
    partition is out of order: then a new producer replaces it, under another name."""

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        for number in itertools.count(1):
            if self.stopping.is_set():
                return
            self.failed = False
            self.identity = f"{self.name}.{number}"
            await self._write()

    async def _write(self) -> None:
        producer = AIOKafkaProducer(
            **self.access.aiokafka(),
            client_id=self.name,
            enable_idempotence=True,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            retry_backoff_ms=50,
            metadata_max_age_ms=2000,
        )
        try:
            await producer.start()
        except KafkaError as error:
            self.history.note(f"{self.name}: {error!r}")
            await asyncio.sleep(PAUSE_S)
            return
        waiting: set[asyncio.Task[None]] = set()
        while not self.stopping.is_set() and not self.failed:
            for _ in range(_PER_TURN):
                partition, value = self.next_record()
                try:
                    sent = await producer.send(self.topic, value, partition=partition)
                except KafkaError as error:
                    self._give_up(value, error)
                    break
                task = asyncio.create_task(self._delivered(sent, value))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.sleep(PAUSE_S)
        if waiting:
            await asyncio.wait(waiting, timeout=60)
        await producer.stop()

    async def _delivered(self, sent: asyncio.Future[Any], value: bytes) -> None:
        try:
            metadata = await sent
        except KafkaError as error:
            self._give_up(value, error)
        else:
            self.history.acknowledge(self.name, metadata.partition, metadata.offset, value)

    def _give_up(self, value: bytes, error: KafkaError) -> None:
        if not self.failed:
            self.history.note(f"{self.name}: {value!r} was given up: {error!r}")
        self.failed = True


class TransactionalWriter(Writer):
    """Transactions of librdkafka, every fifth of them aborted on purpose."""

    def run(self) -> None:
        producer = self._new_producer()
        for number in itertools.count(1):
            if self.stopping.is_set():
                break
            transaction = self.history.transactions[f"{self.name}/t{number}"] = Transaction()
            try:
                self._transaction(producer, number, transaction)
            except confluent_kafka.KafkaException as error:
                producer = self._recover(producer, transaction, error)
            time.sleep(PAUSE_S)

    def _transaction(self, producer: confluent_kafka.Producer, number: int, transaction: Transaction) -> None:
        producer.begin_transaction()
        for _ in range(_PER_TURN * 2):
            partition, value = self.next_record(f"t{number}/")
            transaction.values.append((partition, value))
            producer.produce(self.topic, value, partition=partition)
            producer.poll(0)
        if number % 5:
            retry(lambda: producer.commit_transaction(10), self.stopping)
            transaction.outcome = Outcome.COMMITTED
        else:
            retry(lambda: producer.abort_transaction(10), self.stopping)
            transaction.outcome = Outcome.ABORTED

    def _recover(
        self,
        producer: confluent_kafka.Producer,
        transaction: Transaction,
        error: confluent_kafka.KafkaException,
    ) -> confluent_kafka.Producer:
        reason = error.args[0]
        self.history.note(f"{self.name}: {reason}")
        if reason.txn_requires_abort():
            try:
                retry(lambda: producer.abort_transaction(10), self.stopping)
                transaction.outcome = Outcome.ABORTED
                return producer
            except confluent_kafka.KafkaException as failed:
                self.history.note(f"{self.name}: not even aborted: {failed.args[0]}")
        return self._new_producer()

    def _new_producer(self) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(
            {
                **self.access.librdkafka(),
                "transactional.id": self.name,
                "transaction.timeout.ms": 60_000,
                "message.timeout.ms": 60_000,
            }
        )
        retry(lambda: producer.init_transactions(10), self.stopping)
        return producer


def retry(call: Callable[[], None], stopping: threading.Event) -> None:
    """Retry while librdkafka reports a retriable error; after the last fault only until a deadline."""
    deadline = float("inf")
    while True:
        try:
            call()
            return
        except confluent_kafka.KafkaException as error:
            if stopping.is_set():
                deadline = min(deadline, time.monotonic() + 60)
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
