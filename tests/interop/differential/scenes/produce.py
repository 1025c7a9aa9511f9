"""Produce in every version, with valid and invalid requests."""

from __future__ import annotations

import time
from collections.abc import Iterator

from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.harness.wire.batches import GZIP, LZ4, SNAPPY, ZSTD, batch, old_message
from tests.interop.differential.broker import TIME, Broker

VERSIONS = range(3, 14)
NEWEST_BY_NAME = 12
UNKNOWN_ID = bytes(range(16))
NOW = int(time.time() * 1000)


def request(
    topic: str,
    *parts: tuple[int, bytes | None],
    topic_id: bytes = bytes(16),
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = [
        PartitionProduceData(index=index, records=None if records is None else memoryview(records))
        for index, records in parts
    ]
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=5000, transactional_id=transactional_id, topic_data=topics)


def every_version(broker: Broker) -> None:
    topic = broker.topic("versions", 2)
    good = batch(timestamp=TIME)
    for version in VERSIONS:
        _in_version(broker, version, topic, good)


def _in_version(broker: Broker, version: int, topic: str, good: bytes) -> None:
    topic_id = broker.topic_ids[topic]

    def say(label: str, asked: ProduceRequest) -> None:
        broker.ask(f"v{version} {label}", asked, version)

    for acks in (-1, 1, 5):
        say(f"acks {acks}", request(topic, (0, good), topic_id=topic_id, acks=acks))
    say("unknown partition", request(topic, (0, good), (9, good), topic_id=topic_id))
    say("negative partition", request(topic, (-1, good), topic_id=topic_id))
    say("unknown topic", request("nobody", (0, good), topic_id=UNKNOWN_ID))
    say("zero id or no name", request("", (0, good)))
    say("invalid name", request("a/b", (0, good), topic_id=UNKNOWN_ID))
    say("empty records", request(topic, (0, b""), topic_id=topic_id))
    say("two batches", request(topic, (0, good + good), topic_id=topic_id))
    say("wrong checksum", request(topic, (0, batch(crc=1)), topic_id=topic_id))
    say("no topics", ProduceRequest(acks=-1, timeout_ms=1000))
    say("zstd", request(topic, (0, batch(codec=ZSTD, timestamp=TIME)), topic_id=topic_id))
    say("a transactional id", request(topic, (0, good), topic_id=topic_id, transactional_id="mine"))


def null_records(broker: Broker) -> None:
    topic = broker.topic("null")
    broker.ask("null records", request(topic, (0, None)), NEWEST_BY_NAME)


def invalid_batches(broker: Broker) -> None:
    topic = broker.topic("lies")
    for label, records in _invalid():
        broker.ask(label, request(topic, (0, records)), NEWEST_BY_NAME)
    look(broker, "the stored batches", topic)


def _invalid() -> Iterator[tuple[str, bytes]]:
    good = batch(timestamp=TIME)
    for magic in (0, 1):
        yield f"magic {magic}", old_message(magic)
    for magic in (3, 127, -1):
        yield f"magic {magic}", batch(magic=magic)
    for count, last in ((5, 0), (0, -1), (0, 0), (-1, -2), (1, 5), (2, 1)):
        yield f"{count} records, last delta {last}", batch(count=count, last_offset_delta=last)
    for codec in (5, 6, 7):
        yield f"codec {codec}", batch(attributes=codec, timestamp=TIME)
    yield "a control batch", batch(attributes=0x20)
    yield "a transactional batch without transaction", batch(attributes=0x10)
    yield "log append time from the client", batch(attributes=0x08, timestamp=TIME)
    yield "base offset 7", batch(base_offset=7, timestamp=TIME)
    yield "a byte too many", good + b"\0"
    yield "a byte too few", good[:-1]
    yield "half a header", good[:30]
    yield "ten bytes", good[:10]
    yield "a batch and half another", good + good[:40]
    for length in (0, 10, -5, 2**31 - 1):
        yield f"length {length}", batch(length=length)
    yield "an empty batch", batch([], count=0, last_offset_delta=-1)
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        yield f"good, codec {codec}", batch(codec=codec, timestamp=TIME)


def sizes(broker: Broker) -> None:
    topic = broker.topic("sizes", config={"max.message.bytes": "1000"})
    for size in (800, 900, 930, 931, 932, 933, 940, 2000):
        records = batch([(None, b"x" * size)], timestamp=TIME)
        broker.ask(f"{len(records)} bytes", request(topic, (0, records)), NEWEST_BY_NAME)


def timestamps(broker: Broker) -> None:
    create = broker.topic(
        "create-time",
        config={"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"},
    )
    append = broker.topic("append-time", config={"message.timestamp.type": "LogAppendTime"})
    for label, stamp in (("old", NOW - 7_200_000), ("future", NOW + 7_200_000), ("none", -1), ("now", NOW)):
        for version in (3, 8, NEWEST_BY_NAME):
            two = batch([(b"a", b"b"), (b"c", b"d")], timestamp=stamp)
            broker.ask(f"create time, {label} v{version}", request(create, (0, two)), version)
            broker.ask(f"append time, {label} v{version}", request(append, (0, two)), version)
    defaults = broker.topic("default-times")
    for label, stamp in (
        ("old", 1000),
        ("future", NOW + 7_200_000),
        ("far", NOW + 864_000_000),
        ("minus", -5),
    ):
        broker.ask(f"defaults, {label}", request(defaults, (0, batch(timestamp=stamp))), NEWEST_BY_NAME)
    look(broker, "the log with append time", append)


def compacted(broker: Broker) -> None:
    topic = broker.topic("compacted", config={"cleanup.policy": "compact"})
    for version in (3, 7, 8, NEWEST_BY_NAME):
        for label, records in (
            ("no key", [(None, b"v")]),
            ("the second has no key", [(b"k", b"v"), (None, b"v"), (None, b"w")]),
            ("keys", [(b"k", b"v"), (b"l", None)]),
            ("an empty key", [(b"", b"v")]),
        ):
            for codec in (0, GZIP):
                data = batch(records, codec=codec, timestamp=TIME)
                broker.ask(f"v{version} {label}, codec {codec}", request(topic, (0, data)), version)


def idempotence(broker: Broker) -> None:
    topic = broker.topic("idempotent", 4)
    number = 0

    def send(
        label: str,
        sequence: int,
        *,
        epoch: int = 0,
        producer: int = 70_000,
        count: int = 1,
        partition: int = 0,
        attributes: int = 0,
    ) -> None:
        nonlocal number
        number += 1
        records = batch(
            [(b"k", b"v")] * count, timestamp=TIME, producer_id=producer, producer_epoch=epoch,
            sequence=sequence, attributes=attributes,
        )  # fmt: skip
        broker.ask(f"{number} {label}", request(topic, (partition, records)), NEWEST_BY_NAME)

    send("the first", 0)
    send("again", 0)
    send("the next", 1, count=3)
    send("again", 1, count=3)
    send("the same sequence, fewer", 1, count=2)
    send("a gap", 10)
    send("in between", 2)
    for sequence in range(4, 10):
        send(f"sequence {sequence}", sequence)
    send("a duplicate out of the last five", 0)
    send("a duplicate of the last five", 5)
    send("a new epoch that does not start at 0", 3, epoch=1)
    send("a new epoch", 0, epoch=1)
    send("the old epoch", 10, epoch=0)
    send("a new epoch, second", 1, epoch=1)
    send("an unknown producer at 5", 5, producer=70_001, partition=1)
    send("an unknown producer at 0", 0, producer=70_002, partition=1)
    send("no sequence", -1, producer=70_003, partition=1)
    send("no epoch", 0, epoch=-1, producer=70_004, partition=1)
    send("transactional outside of a transaction", 0, producer=70_005, partition=1, attributes=0x10)
    send("the last sequence", 2**31 - 1, producer=70_006, partition=2)
    send("wrapped around", 0, producer=70_006, partition=2)
    for partition in range(4):
        look(broker, f"partition {partition}", topic, partition)


def without_acks(broker: Broker) -> None:
    """No response; afterwards the connection is open or closed."""
    topic = broker.topic("no-acks")
    topic_id = broker.topic_ids[topic]
    good = batch(timestamp=TIME)
    for label, version, asked in (
        ("good", 12, request(topic, (0, good), acks=0)),
        ("good by id", 13, request(topic, (0, good), topic_id=topic_id, acks=0)),
        ("unknown topic", 12, request("nobody", (0, good), acks=0)),
        ("wrong checksum", 12, request(topic, (0, batch(crc=1)), acks=0)),
        ("no topics", 12, ProduceRequest(acks=0, timeout_ms=100)),
    ):
        broker.wire().post(asked, version)
        broker.ask(f"after {label}", InitProducerIdRequest(transactional_id=""), 4)
    look(broker, "the stored batches", topic)


def internal_topics(broker: Broker) -> None:
    for name in ("__transaction_state", "__share_group_state", "__cluster_metadata"):
        asked = request(name, (0, batch(timestamp=TIME)))
        broker.ask(f"produce to {name}", asked, NEWEST_BY_NAME)


def recompression(broker: Broker) -> None:
    for codec in ("gzip", "lz4", "zstd", "snappy", "uncompressed"):
        topic = broker.topic(f"to-{codec}", config={"compression.type": codec})
        for theirs in (0, GZIP, ZSTD):
            data = batch([(b"k", b"v" * 100)] * 3, codec=theirs, timestamp=TIME)
            broker.ask(f"to {codec} from {theirs}", request(topic, (0, data)), NEWEST_BY_NAME)
        broker.ask(f"{codec}, garbage", request(topic, (0, batch(payload=b"xyz" * 40))), NEWEST_BY_NAME)


def look(broker: Broker, label: str, topic: str, partition: int = 0) -> None:
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[asked])])
    broker.ask(label, fetch, 12)


SCENES = {
    "produce, every version": every_version,
    "produce, null records": null_records,
    "produce, invalid batches": invalid_batches,
    "produce, sizes": sizes,
    "produce, timestamps": timestamps,
    "produce, compacted topics": compacted,
    "produce, idempotence": idempotence,
    "produce, without acks": without_acks,
    "produce, internal topics": internal_topics,
    "produce, recompression": recompression,
}
