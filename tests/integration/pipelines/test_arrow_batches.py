"""Whole batches by offset range, and as Arrow columns, from a real broker with what real producers wrote."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client import AdminClient, NewTopic
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.batches.reader import (
    FetchedBatches,
    OffsetRange,
    PartitionReader,
    ReadOptions,
    RecordsGone,
    TopicReplaced,
    read_batches,
    read_batches_async,
    visible_batches,
)
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings, parse_addresses
from moldau.network.client import VersionRange
from moldau.pipelines.arrow.reading import RangeRequest, read_range
from moldau.protocol.records import iter_records
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait, stored_codecs, wait_until_known
from tests.integration.conftest import StartNode

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def settings_of(bootstrap: str, **others: Any) -> ClientSettings:
    return ClientSettings(parse_addresses(bootstrap), **others)


def rows(
    bootstrap: str,
    topic: str,
    start: int,
    end: int,
    *,
    headers: bool = False,
    read_committed: bool = True,
    fail_on_data_loss: bool = True,
    **settings: Any,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in read_range(
        settings_of(bootstrap, **settings),
        RangeRequest(topic, 0, start, end),
        include_headers=headers,
        read_committed=read_committed,
        fail_on_data_loss=fail_on_data_loss,
    ):
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def end_of(bootstrap: str, topic: str, *, read_committed: bool = False) -> int:
    partition = TopicPartition(topic, 0)
    with AdminClient(bootstrap) as admin:
        found = admin.list_offsets({partition: OffsetSpec.LATEST}, read_committed=read_committed)[partition]
    assert not isinstance(found, KafkaError)
    return found.offset


def produce(bootstrap: str, topic: str, values: range, **config: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0, **config})
    for n in values:
        producer.produce(topic, b"value %d" % n, b"key %d" % n, partition=0)
    assert producer.flush(60) == 0


def offsets_in(fetched: FetchedBatches) -> Iterator[int]:
    for position, header in visible_batches(fetched):
        for record in iter_records(fetched.data[position : position + header.size_in_bytes], header):
            yield record.offset


def test_every_compression_and_every_field(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    written: list[dict[str, Any]] = []
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
        for n in range(200):
            row = {
                "key": None if n % 3 == 0 else b"key %d" % n,
                "value": None if n % 5 == 0 else b"value " * n,
                # No headers are null, as with Spark's own connector.
                "headers": [{"key": "ä", "value": b"%d" % n}, {"key": "none", "value": None}] * (n % 3)
                or None,
            }
            headers = [(each["key"], each["value"]) for each in row["headers"] or ()]
            producer.produce(
                topic, row["value"], row["key"], partition=0, headers=headers, timestamp=1000 + n
            )
            written.append(row)
        assert producer.flush(60) == 0
    assert stored_codecs(bootstrap, topic) == set(CODECS)
    found = rows(bootstrap, topic, 0, len(written), headers=True)
    assert [{name: row[name] for name in ("key", "value", "headers")} for row in found] == written
    assert [row["offset"] for row in found] == list(range(1000))
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in found} == {(topic, 0, 0)}
    assert [round(row["timestamp"].timestamp() * 1000) for row in found] == [1000 + n for n in range(200)] * 5
    for start, end in ((0, 1), (150, 151), (199, 201), (333, 777), (999, 1000), (5, 5)):
        assert [row["offset"] for row in rows(bootstrap, topic, start, end)] == list(range(start, end))


def test_log_append_time_is_everybodys(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic, config={"message.timestamp.type": "LogAppendTime"})
    produce(bootstrap, topic, range(20))
    found = rows(bootstrap, topic, 0, 20)
    assert {row["timestampType"] for row in found} == {1}
    assert all(row["timestamp"].year >= 2024 for row in found)


def test_transactions(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    first, second = (
        Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{n}", "linger.ms": 0})
        for n in range(2)
    )
    for producer in (first, second):
        producer.init_transactions(60)

    def send(producer: Producer, value: bytes) -> None:
        producer.produce(topic, value, partition=0)
        assert producer.flush(60) == 0

    for turn in range(3):
        first.begin_transaction()
        second.begin_transaction()
        for n in range(3):
            send(first, b"aborted %d.%d" % (turn, n))
            send(second, b"committed %d.%d" % (turn, n))
        first.abort_transaction(60)
        send(second, b"committed %d.3" % turn)
        second.commit_transaction(60)
    wanted = [b"committed %d.%d" % (turn, n) for turn in range(3) for n in range(4)]
    # The last marker is written after the answer to the commit.
    eventually(lambda: end_of(bootstrap, topic, read_committed=True) == 27, what="everything is decided")
    committed = rows(bootstrap, topic, 0, 27)
    assert [row["value"] for row in committed] == wanted
    everything = rows(bootstrap, topic, 0, 27, read_committed=False)
    assert len(everything) == 21
    by_offset = {row["offset"]: row for row in committed}
    for start in range(22):
        found = rows(bootstrap, topic, start, start + 5)
        assert found == [by_offset[each] for each in range(start, start + 5) if each in by_offset]


def test_a_transaction_that_is_open_is_waited_for(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"in time", partition=0)
    assert producer.flush(60) == 0
    with pytest.raises(RecordsGone, match=r"contains 0 to 0"):
        rows(bootstrap, topic, 0, 1, api_timeout_ms=300)
    commit = threading.Timer(1.0, producer.commit_transaction, [30])
    commit.start()
    assert [row["value"] for row in rows(bootstrap, topic, 0, 1)] == [b"in time"]
    commit.join()


def test_what_compaction_left(start_node: StartNode, topic: str) -> None:
    node = start_node(config={"log.cleaner.backoff.ms": "100"})
    bootstrap = node.bootstrap_servers
    config = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.0001"}
    create_and_wait(bootstrap, topic, config=config)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for n in range(300):
        producer.produce(topic, b"%d" % n, b"%d" % (n % 7), partition=0)
    assert producer.flush(60) == 0

    def compacted() -> list[int]:
        # A record in a later segment lets those before it be cleaned.
        produce(bootstrap, topic, range(1))
        found = [row["offset"] for row in rows(bootstrap, topic, 0, 300)]
        return found if len(found) == 7 else []

    assert eventually(compacted, every=0.5) == list(range(293, 300))
    assert [row["value"] for row in rows(bootstrap, topic, 0, 295)] == [b"293", b"294"]
    assert rows(bootstrap, topic, 10, 200) == []
    end = end_of(bootstrap, topic)
    assert [row["offset"] for row in rows(bootstrap, topic, 297, end)][:3] == [297, 298, 299]


def test_records_that_are_gone(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(100))
    with AdminClient(bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 40})
    with pytest.raises(RecordsGone) as gone:
        rows(bootstrap, topic, 25, 80)
    assert (gone.value.log_start, gone.value.log_end, gone.value.missing) == (40, 100, (25, 40))
    assert f"{topic}-0: offsets 25 to 80 were requested, but 15 of them (25 to 40) are gone" in str(
        gone.value
    )
    kept = rows(bootstrap, topic, 25, 80, fail_on_data_loss=False)
    assert [row["offset"] for row in kept] == list(range(40, 80))
    assert rows(bootstrap, topic, 3, 20, fail_on_data_loss=False) == []
    with pytest.raises(RecordsGone, match=r"17 of them \(3 to 20\)"):
        rows(bootstrap, topic, 3, 20)


def test_records_that_never_were(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(10))
    for start in (5, 10, 30):
        with pytest.raises(RecordsGone, match=r"the partition contains 0 to 10"):
            rows(bootstrap, topic, start, 50, api_timeout_ms=200)
        kept = rows(bootstrap, topic, start, 50, api_timeout_ms=200, fail_on_data_loss=False)
        assert [row["offset"] for row in kept] == list(range(start, 10))


def test_a_topic_that_nobody_knows(bootstrap: str, topic: str) -> None:
    with pytest.raises(KafkaError, match=topic) as unknown:
        rows(bootstrap, topic, 0, 1)
    assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_made_anew_while_it_is_read(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(500), **{"batch.num.messages": 10})
    options = ReadOptions(max_bytes=2000)
    reading = read_batches(settings_of(bootstrap), OffsetRange(TopicPartition(topic, 0), 0, 500), options)
    next(reading)
    with AdminClient(bootstrap) as admin:
        admin.delete_topics([topic])
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(500), **{"batch.num.messages": 10})
    with pytest.raises(TopicReplaced, match=topic):
        list(reading)


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 18])
def test_every_version_of_fetch(bootstrap: str, topic: str, version: int) -> None:
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(300), **{"batch.num.messages": 10})

    async def read() -> list[int]:
        cluster = Cluster(settings_of(bootstrap))
        await cluster.refresh()
        for node in cluster.nodes:
            connection = await cluster.node_connection(node)
            connection.api_versions[1] = VersionRange(4, version)
        wanted = OffsetRange(TopicPartition(topic, 0), 95, 205)
        fetched = [each async for each in read_batches_async(cluster, wanted, ReadOptions(max_bytes=1000))]
        cluster.close()
        assert len(fetched) > 3
        return [offset for each in fetched for offset in offsets_in(each)]

    offsets = asyncio.run(read())
    # Whole batches around the range, of at most ten records.
    assert offsets == list(range(offsets[0], offsets[-1] + 1))
    assert 85 < offsets[0] <= 95 and 204 <= offsets[-1] < 214


def test_reading_ends_in_the_middle_when_nobody_wants_more(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(300), **{"batch.num.messages": 10})
    options, wanted = ReadOptions(max_bytes=1000), OffsetRange(TopicPartition(topic, 0), 0, 300)
    reading = read_batches(settings_of(bootstrap), wanted, options)
    assert 0 in offsets_in(next(reading))
    reading.close()
    assert [row["offset"] for row in rows(bootstrap, topic, 0, 300)] == list(range(300))


def _read_in_child(bootstrap: str, topic: str, found: Any) -> None:
    found.put([row["offset"] for row in rows(bootstrap, topic, 0, 10)])


def test_a_forked_process_reads_on_connections_of_its_own(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    produce(bootstrap, topic, range(10))
    assert len(rows(bootstrap, topic, 0, 10)) == 10
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    child = fork.Process(target=_read_in_child, args=(bootstrap, topic, found))
    child.start()
    assert found.get(timeout=60) == list(range(10))
    child.join()
    assert len(rows(bootstrap, topic, 0, 10)) == 10


def test_a_broker_that_is_away_for_a_while(start_node: StartNode, topic: str) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic)
    produce(node.bootstrap_servers, topic, range(2000), **{"batch.num.messages": 20})
    # Longer than the admin client waits for the only broker.
    settings = settings_of(node.bootstrap_servers, bootstrap_timeout_ms=500)
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 2000)
    found: list[int] = []
    back = threading.Timer(3.0, node.restart)
    for number, fetched in enumerate(read_batches(settings, wanted, ReadOptions(max_bytes=5000))):
        found += offsets_in(fetched)
        if number == 5:
            node.kill()
            back.start()
    back.join()
    assert found == list(range(2000))


def test_a_broker_that_stays_away(start_node: StartNode, topic: str) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic)
    produce(node.bootstrap_servers, topic, range(10))
    settings = settings_of(node.bootstrap_servers)
    options = ReadOptions(patience_ms=1500)
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 10)
    assert len(list(read_batches(settings, wanted, options))) == 1
    node.kill()
    with pytest.raises(KafkaError, match=r"refused|closed"):
        list(read_batches(settings, wanted, options))


def test_leaders_change_while_a_partition_is_read(start_node: StartNode) -> None:
    node = start_node(brokers=3, config={"default.replication.factor": "3", "min.insync.replicas": "1"})
    bootstrap, topic = node.bootstrap_servers, f"led-{uuid.uuid4().hex[:8]}"
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1, replication_factor=3)])
    wait_until_known(bootstrap, topic)
    produce(bootstrap, topic, range(3000), acks="all", **{"batch.num.messages": 20})

    async def read() -> list[int]:
        cluster = Cluster(settings_of(bootstrap))
        reader = PartitionReader(
            cluster, OffsetRange(TopicPartition(topic, 0), 0, 3000), ReadOptions(max_bytes=5000)
        )
        found: list[int] = []
        while (fetched := await reader.read()) is not None:
            found += offsets_in(fetched)
            if len(found) in range(900, 1100) and not killed:
                leader = (await cluster.metadata([topic])).topics[0].partitions[0].leader_id
                killed.append(leader)
                await asyncio.to_thread(node.kill, leader)
        cluster.close()
        return found

    killed: list[int] = []
    assert asyncio.run(read()) == list(range(3000))
    assert killed
