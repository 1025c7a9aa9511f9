"""The workload of one broker on a shared folder: everything that can be written.

A `Ledger` records every acknowledged record and every producer id of all brokers, so that each broker can
be checked, with a client library, for everything that the previous ones acknowledged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.harness.apache.shared_folder import SharedFolder
from tests.harness.folders.inventory import Inventory
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.harness.wire.wire import Wire

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_QUIET = {"log_level": 0}
_SET, _DELETE = 0, 1
_KEEP = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(10**15)}
#: Rolled by record timestamps, so that one workload fills several segments.
ROLLING = {**_KEEP, "segment.ms": "1000"}
COMPACTED = {
    **ROLLING,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Ledger:
    def __init__(self) -> None:
        self.records: dict[tuple[str, int], dict[int, Sent]] = {}
        self.producer_ids: list[int] = []
        self._clock = int(time.time() * 1000)

    def produce(self, bootstrap: str, topic: str, codec: str, records: list[tuple[Any, Any]]) -> None:
        """Write with an idempotent producer, a batch per ten records, with timestamps seconds apart."""
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "batch.num.messages": 10,
                "linger.ms": 5,
                **_QUIET,
            }
        )
        for number, (key, value) in enumerate(records):
            self._clock += 300
            sent = Sent(key, value, (("n", str(number).encode()), ("null", None)), self._clock)
            producer.produce(
                topic,
                value,
                key,
                headers=list(sent.headers),
                timestamp=sent.timestamp,
                on_delivery=self._note(sent),
            )
        assert producer.flush(60) == 0

    def _note(self, sent: Sent) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            place = (str(message.topic()), int(message.partition() or 0))
            self.records.setdefault(place, {})[int(message.offset() or 0)] = sent

        return delivered

    def forget(self, topic: str) -> None:
        self.records = {place: found for place, found in self.records.items() if place[0] != topic}

    def new_producer_id(self, bootstrap: str) -> None:
        def ask() -> Any:
            with Wire(bootstrap) as wire:
                answer = wire.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
            return None if answer.error_code else answer

        answer = eventually(ask, what="a producer id")
        assert answer.producer_id not in self.producer_ids
        assert answer.producer_id > max(self.producer_ids, default=-1)
        self.producer_ids.append(answer.producer_id)

    def check(self, bootstrap: str, starts: Mapping[tuple[str, int], int], ends: Mapping[Any, int]) -> None:
        """Check with a consumer that every partition contains exactly the acknowledged records."""
        found = read_all(bootstrap, {place: end for place, end in ends.items() if place in self.records})
        for place, sent in self.records.items():
            expected = {offset: each for offset, each in sent.items() if offset >= starts[place]}
            if place[0].startswith("compacted"):
                assert found[place].items() <= expected.items(), place
                assert last_values(found[place]) == last_values(expected), place
            else:
                assert found[place] == expected, place


def last_values(records: Mapping[int, Sent]) -> dict[bytes | None, bytes | None]:
    values: dict[bytes | None, bytes | None] = {}
    for _, sent in sorted(records.items()):
        values[sent.key] = sent.value
    return {key: value for key, value in values.items() if value is not None}


def read_all(bootstrap: str, ends: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], dict[int, Sent]]:
    found: dict[tuple[str, int], dict[int, Sent]] = {place: {} for place in ends}
    left = {place for place, end in ends.items() if end > 0}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "ledger",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            **_QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in left])
    deadline = time.monotonic() + 60
    while left:
        assert time.monotonic() < deadline, f"no more records from {left}"
        for message in consumer.consume(500, timeout=0.2):
            place = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            if error is None:
                headers = tuple((name, value) for name, value in message.headers() or [])
                sent = Sent(message.key(), message.value(), headers, message.timestamp()[1])
                found[place][int(message.offset() or 0)] = sent
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(place)
            else:
                raise AssertionError(error)
    consumer.close()
    return found


def begin(bootstrap: str) -> None:
    """Create the topics that all workloads use."""
    for codec in CODECS:
        create_and_wait(bootstrap, f"codec-{codec}", 2, ROLLING)
    create_and_wait(bootstrap, "compacted", 1, COMPACTED)
    create_and_wait(bootstrap, "recompressed", 1, {**_KEEP, "compression.type": "lz4"})
    create_and_wait(bootstrap, "growing", 1, _KEEP)
    create_and_wait(bootstrap, "reborn", 1, _KEEP)


def work(bootstrap: str, turn: int, ledger: Ledger) -> None:
    """Write records and change topics, configs and quotas."""
    _records(bootstrap, turn, ledger)
    _topics(bootstrap, turn, ledger)
    _settings(bootstrap, turn)
    ledger.new_producer_id(bootstrap)


def _records(bootstrap: str, turn: int, ledger: Ledger) -> None:
    for codec in CODECS:
        records: list[tuple[Any, Any]] = [(b"k%d" % n, b"%d-%d " % (turn, n) * 20) for n in range(20)]
        records += [(None, b"no key"), (b"no value", None), (None, None), (b"", b"")]
        ledger.produce(bootstrap, f"codec-{codec}", codec, records)
    keys = [(b"k%d" % (n * 7 % 11), b"%d-%d" % (turn, n) if n % 5 else None) for n in range(40)]
    ledger.produce(bootstrap, "compacted", CODECS[turn % 5], keys)
    ledger.produce(bootstrap, "recompressed", "gzip", [(b"k", b"v%d" % turn)] * 5)
    # Delete some records of the first partition: the log then starts inside a segment.
    end = max(ledger.records["codec-none", 0]) + 1
    delete_records(bootstrap, "codec-none", 0, end - 7)


def delete_records(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=10_000
    )
    with Wire(bootstrap) as wire:
        answer = wire.call(request, 2).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (0, offset)


def _topics(bootstrap: str, turn: int, ledger: Ledger) -> None:
    ledger.produce(bootstrap, "reborn", "none", [(b"k", b"of turn %d" % turn)])
    delete_topic(bootstrap, "reborn")
    ledger.forget("reborn")
    create_and_wait(bootstrap, "reborn", 1, _KEEP)
    create_and_wait(bootstrap, f"turn-{turn}", 2, _KEEP)
    ledger.produce(bootstrap, f"turn-{turn}", "zstd", [(b"k%d" % n, b"v") for n in range(5)])
    more = CreatePartitionsTopic(name="growing", count=turn + 2, assignments=None)
    with Wire(bootstrap) as wire:
        answer = wire.call(CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3)
    assert answer.results[0].error_code == 0, answer.results[0].error_message
    ledger.produce(bootstrap, "growing", "none", [(b"k%d" % n, b"v") for n in range(30)])


def delete_topic(bootstrap: str, name: str) -> None:
    with Wire(bootstrap) as wire:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
        assert wire.call(request, 6).responses[0].error_code == 0


def _settings(bootstrap: str, turn: int) -> None:
    """Set configs on a topic, the broker, all brokers, a group and client metrics; remove one each time."""
    before, now = str(10_000 + turn - 1), str(10_000 + turn)
    alter_configs(
        bootstrap,
        (2, f"turn-{turn}", {"flush.messages": now, "max.message.bytes": "2000000"}),
        (2, "codec-gzip", {"flush.ms": now}),
        (2, "recompressed", {"compression.type": "lz4", "retention.bytes": now if turn % 2 else None}),
        (4, "1", {"log.cleaner.backoff.ms": now, "message.max.bytes": "1000000" if turn % 2 else None}),
        (4, "", {"log.retention.ms": before + "000000", "background.threads": str(10 + turn % 2)}),
        (32, f"group-{turn}", {"consumer.session.timeout.ms": "50000"}),
        (16, f"metrics-{turn}", {"interval.ms": "100000", "metrics": "org.apache.kafka.producer."}),
    )
    alter_quotas(
        bootstrap,
        ({"user": f"u{turn}"}, {"producer_byte_rate": 1000 + turn}),
        ({"user": "u", "client-id": None}, {"consumer_byte_rate": 1e9 + turn, "request_percentage": 50}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": None if turn % 2 else 5}),
        ({"client-id": None}, {"controller_mutation_rate": float(turn + 1)}),
    )


def alter_configs(bootstrap: str, *changes: tuple[int, str, Mapping[str, str | None]]) -> None:
    """Alter configs by resource type and name; a value of None removes a config."""
    resources = [
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
                for key, value in values.items()
            ],
        )
        for kind, name, values in changes
    ]
    with Wire(bootstrap, timeout=60) as wire:
        answer = wire.call(IncrementalAlterConfigsRequest(resources=resources), 1)
    assert [each.error_message for each in answer.responses if each.error_code] == []


def alter_quotas(
    bootstrap: str, *changes: tuple[Mapping[str, str | None], Mapping[str, float | None]]
) -> None:
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            ops=[OpData(key=key, value=v or 0.0, remove=v is None) for key, v in values.items()],
        )
        for entity, values in changes
    ]
    with Wire(bootstrap, timeout=60) as wire:
        answer = wire.call(AlterClientQuotasRequest(entries=entries), 1)
    assert [each.error_message for each in answer.entries if each.error_code] == []


def wait_for_checkpoints(shared: SharedFolder, inventory: Inventory) -> None:
    """Wait until the log start offsets of all logs are in the checkpoint files."""
    expected = {
        f"{name} {index} {partition['start']}"
        for name, topic in inventory["topics"].items()
        for index, partition in topic["partitions"].items()
        if partition["start"] > 0
    }

    def written() -> set[str]:
        files = [folder / "log-start-offset-checkpoint" for folder in shared.dirs]
        return {line for file in files for line in file.read_text().splitlines()}

    eventually(lambda: expected <= written(), what="the log starts are on disk")
