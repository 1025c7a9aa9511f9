"""Records arrive as they are, without gaps after kill -9, and as soon as topics and partitions exist."""

from __future__ import annotations

from functools import partial
from typing import Any

from confluent_kafka import Producer

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigResource, ResourceType
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.topic_types import NewTopic
from moldau.pipelines.mirror.records.source_offset import read_source_offset
from tests.harness.mirror import Feed, MirrorProcess, produce, read_all, values_of
from tests.harness.waiting import eventually
from tests.integration.mirror.conftest import Pair


def content(message: Any) -> tuple[Any, ...]:
    return (message.key(), message.value(), message.headers(), message.timestamp(), message.partition())


def arrived(pair: Pair, topic: str, count: int, partition: int = 0) -> bool:
    return len(read_all(pair.b, topic, partition)) >= count


def stored(pair: Pair, topic: str, offset: int) -> bool:
    """Return whether a source offset of the topic, at least this one, is stored."""
    found = [
        read_source_offset("a", each.key(), each.value())
        for partition in range(3)
        for each in read_all(pair.b, "mm2-offsets.a.internal", partition)
    ]
    return any(each and each.partition.topic == topic and each.offset >= offset for each in found)


def end_offset(admin: Any, topic: str, partition: int = 0) -> int:
    where = TopicPartition(topic, partition)
    return int(checked(admin.list_offsets({where: OffsetSpec.LATEST}))[where].offset)


def test_records_are_copied_as_they_are(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("orders", 2, configs={"retention.ms": "7200000"})]))
    for number, codec in enumerate(("none", "gzip", "lz4", "snappy", "zstd")):
        producer = Producer({"bootstrap.servers": pair.a, "compression.type": codec, "linger.ms": 50})
        for each in range(20):
            producer.produce(
                "orders",
                None if each == 3 else b"v" * 2000,
                key=f"{codec}{each}".encode(),
                partition=each % 2,
                timestamp=1_700_000_000_000 + number * 1000 + each,
                headers=[("h", b"x"), ("h", None), ("empty", b"")],
            )
        assert producer.flush(30) == 0
    eventually(
        lambda: arrived(pair, "a.orders", 50) and arrived(pair, "a.orders", 50, 1), what=mirror.log[-2000:]
    )
    for partition in (0, 1):
        copied = read_all(pair.b, "a.orders", partition)
        assert [content(each) for each in copied] == [
            content(each) for each in read_all(pair.a, "orders", partition)
        ]
    described = checked(pair.admin_b.describe_configs([ConfigResource(ResourceType.TOPIC, "a.orders")]))
    (entries,) = described.values()
    assert {entry.name: entry.value for entry in entries}["retention.ms"] == "7200000"


def test_a_config_that_is_changed_on_the_target_is_set_back(pair: Pair, mirror: MirrorProcess) -> None:
    def retention() -> str | None:
        (entries,) = pair.admin_b.describe_configs([copy]).values()
        if isinstance(entries, KafkaError):
            return None
        return next(entry.value for entry in entries if entry.name == "retention.ms")

    copy = ConfigResource(ResourceType.TOPIC, "a.configured")
    checked(pair.admin_a.create_topics([NewTopic("configured", 1, configs={"retention.ms": "7200000"})]))
    eventually(lambda: retention() == "7200000", what=mirror.log[-2000:])
    manual = [AlterConfig("retention.ms", AlterOperation.SET, "3600000")]
    checked(pair.admin_b.incremental_alter_configs({copy: manual}))
    eventually(lambda: retention() == "7200000", what=mirror.log[-2000:])


def test_no_record_is_missing_after_kill_9(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("killed", 1)]))
    feed = Feed(pair.a, "killed")
    try:
        for copied_before in (200, 1000):
            eventually(partial(stored, pair, "killed", copied_before), what=mirror.log[-2000:])
            mirror.kill()
            mirror.start()
    finally:
        produced = feed.stop()
    eventually(lambda: values_of(pair.b, "a.killed")[-1] == produced[-1], what=mirror.log[-2000:])
    copied = values_of(pair.b, "a.killed")
    assert list(dict.fromkeys(copied)) == produced
    assert len(copied) < 2 * len(produced)


def test_nothing_is_copied_again_after_a_stop(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("stopped", 1)]))
    produce(pair.a, "stopped", [str(n) for n in range(100)])
    eventually(lambda: arrived(pair, "a.stopped", 100))
    assert mirror.stop() == 0
    mirror.start()
    produce(pair.a, "stopped", ["last"])
    eventually(lambda: arrived(pair, "a.stopped", 101))
    assert values_of(pair.b, "a.stopped") == [str(n) for n in range(100)] + ["last"]


def test_new_partitions_are_found(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("growing", 1)]))
    produce(pair.a, "growing", ["0"])
    eventually(lambda: arrived(pair, "a.growing", 1))
    checked(pair.admin_a.create_partitions({"growing": 3}))
    eventually(lambda: len(checked(pair.admin_b.describe_topics(["a.growing"]))["a.growing"].partitions) == 3)
    produce(pair.a, "growing", ["2"], partition=2)
    eventually(lambda: arrived(pair, "a.growing", 1, 2))


def test_only_committed_transactions_are_copied(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("transactions", 1)]))
    producer = Producer({"bootstrap.servers": pair.a, "transactional.id": "mirror-test"})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        producer.produce("transactions", str(number).encode(), partition=0)
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    eventually(lambda: arrived(pair, "a.transactions", 3))
    copied = read_all(pair.b, "a.transactions", committed=False)
    assert [each.value() for each in copied] == [b"0", b"2", b"4"]


def test_log_append_time_becomes_the_time_of_the_record(pair: Pair, mirror: MirrorProcess) -> None:
    configs = {"message.timestamp.type": "LogAppendTime"}
    checked(pair.admin_a.create_topics([NewTopic("appended", 1, configs=configs)]))
    produce(pair.a, "appended", ["x"])
    eventually(lambda: arrived(pair, "a.appended", 1))
    (original,), (copied,) = read_all(pair.a, "appended"), read_all(pair.b, "a.appended")
    assert copied.timestamp()[1] == original.timestamp()[1]


def test_gaps_of_compaction_are_closed(pair: Pair, mirror: MirrorProcess) -> None:
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
    }
    mirror.kill()
    checked(pair.admin_a.create_topics([NewTopic("compacted", 1, configs=configs)]))
    for _ in range(3):
        produce(pair.a, "compacted", ["a", "b", "c", "d"])
    produce(pair.a, "compacted", ["b"])

    def compacted() -> bool:
        produce(pair.a, "compacted", ["roll"])
        return [each.value() for each in read_all(pair.a, "compacted")].count(b"a") == 1

    eventually(compacted, every=0.3)
    mirror.start()
    produce(pair.a, "compacted", ["end"])
    eventually(lambda: "end" in values_of(pair.b, "a.compacted"), what=mirror.log[-2000:])
    latest = {each.key(): each.value() for each in read_all(pair.a, "compacted")}
    assert {each.key(): each.value() for each in read_all(pair.b, "a.compacted")} == latest
    assert len(values_of(pair.b, "a.compacted")) < end_offset(pair.admin_a, "compacted")


def test_batches_larger_than_the_target_accepts_are_split(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("large", 1)]))
    checked(pair.admin_b.create_topics([NewTopic("a.large", 1)]))
    change = [AlterConfig("max.message.bytes", AlterOperation.SET, "4000")]
    produce(pair.a, "large", ["first"])
    eventually(lambda: arrived(pair, "a.large", 1))
    checked(pair.admin_b.incremental_alter_configs({ConfigResource(ResourceType.TOPIC, "a.large"): change}))
    values = [str(number) * 200 for number in range(1, 10)] * 4
    produce(pair.a, "large", values, linger_ms=100)
    eventually(lambda: arrived(pair, "a.large", 37), what=mirror.log[-2000:])
    assert values_of(pair.b, "a.large") == ["first", *values]


def test_a_topic_created_again_stops_and_is_reported(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("replaced", 1)]))
    produce(pair.a, "replaced", ["old"])
    eventually(lambda: arrived(pair, "a.replaced", 1))
    checked(pair.admin_a.delete_topics(["replaced"]))
    eventually(lambda: "replaced" not in pair.admin_a.list_topics())
    checked(pair.admin_a.create_topics([NewTopic("replaced", 1)]))
    produce(pair.a, "replaced", ["new1", "new2"])
    eventually(
        lambda: "replaced-0: the topic was deleted and created again" in mirror.log, what=mirror.log[-2000:]
    )
    assert values_of(pair.b, "a.replaced") == ["old"]
    produce(pair.a, "orders", ["others continue"])
    eventually(lambda: "others continue" in values_of(pair.b, "a.orders"))


def test_records_deleted_before_the_copy_are_reported(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("overtaken", 1)]))
    produce(pair.a, "overtaken", ["0", "1"])
    eventually(lambda: arrived(pair, "a.overtaken", 2))
    mirror.stop()
    produce(pair.a, "overtaken", ["2", "3", "4"])
    checked(pair.admin_a.delete_records({TopicPartition("overtaken", 0): 4}))
    mirror.start()
    eventually(lambda: arrived(pair, "a.overtaken", 3))
    assert values_of(pair.b, "a.overtaken") == ["0", "1", "4"]
    assert "2 offsets (2 to 3) of overtaken-0 were deleted by retention" in mirror.log
