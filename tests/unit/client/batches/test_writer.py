"""What a writer makes of answers that real brokers give rarely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.client.batches.writer import BatchWriter
from moldau.client.wire.settings import ClientSettings, parse_addresses
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.init_producer_id import InitProducerIdResponse
from moldau.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from moldau.protocol.records import BatchHeader, Record, build_batch, read_batch_header
from tests.harness.wire.fake_broker import FakeBroker

PRODUCE, INIT_PRODUCER_ID = 0, 22
TOPIC_ID = Uuid(bytes(range(16)))
WHERE = TopicPartition("orders", 0)


class Broker:
    """Answers one Produce after the other with these codes, then with success."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.headers: list[BatchHeader] = []
        self.sent: list[bytes] = []
        self._codes = list(codes)
        answers: dict[int, Callable[[Any], Any]] = {
            ApiKey.METADATA: self._metadata,
            INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=4711, producer_epoch=0),
            PRODUCE: self._produce,
        }
        self.fake = FakeBroker(answers)

    def _metadata(self, _: object) -> MetadataResponse:
        partition = MetadataResponsePartition(partition_index=0, leader_id=1)
        topic = MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=[partition])
        return self.fake.metadata(topics=[topic])

    def _produce(self, request: Any) -> ProduceResponse:
        batch = bytes(request.topic_data[0].partition_data[0].records)
        self.sent.append(batch)
        self.headers.append(read_batch_header(batch))
        code = self._codes.pop(0) if self._codes else ErrorCode.NONE
        answer = PartitionProduceResponse(index=0, error_code=code, base_offset=0 if not code else -1)
        return ProduceResponse(
            responses=[TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=[answer])]
        )

    def write(self, batches: int) -> int:
        """How many records the writer says are stored."""
        with self.fake:
            addresses = parse_addresses(self.fake.bootstrap)
            settings = ClientSettings(addresses, backoff=Backoff(0.001, 0.005))
            with BatchWriter(settings, delivery_timeout_ms=2_000) as writer:
                records = [Record(index, 0, None, b"x") for index in range(10)]
                for _ in range(batches):
                    writer.write([(WHERE, build_batch(records))])
                    writer.flush()
                return writer.records_stored

    def stamps(self) -> list[tuple[int, int]]:
        return [(header.producer_epoch, header.base_sequence) for header in self.headers]


def test_duplicate_sequence_counts_as_acknowledged() -> None:
    broker = Broker(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert broker.write(2) == 20
    assert broker.stamps() == [(0, 0), (0, 10)]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_retriable_error_resends_the_same_bytes(code: ErrorCode) -> None:
    broker = Broker(code, code)
    assert broker.write(2) == 20
    assert broker.sent[0] == broker.sent[1] == broker.sent[2] != broker.sent[3]
    assert broker.stamps() == [(0, 0)] * 3 + [(0, 10)]


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_unknown_producer_id_raises_the_epoch(code: ErrorCode) -> None:
    broker = Broker(ErrorCode.NONE, code)
    assert broker.write(3) == 30
    assert broker.stamps() == [(0, 0), (0, 10), (1, 0), (1, 10)]


def test_refused_batch_fails_the_writer_and_names_the_partition() -> None:
    with pytest.raises(KafkaError, match="orders-0: ") as refused:
        Broker(ErrorCode.TOPIC_AUTHORIZATION_FAILED).write(1)
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_retries_end_with_the_delivery_timeout() -> None:
    with pytest.raises(KafkaError, match=r"orders-0: records were not acknowledged within 2 s \(delivery"):
        Broker(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000).write(1)
