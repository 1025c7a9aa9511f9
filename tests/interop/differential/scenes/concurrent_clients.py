"""Several connections at once: one writes, and the others read.

If a response depends on the order of requests, the scene waits until the first has been answered or,
for one that must stay pending, until the broker has been silent for a moment.
"""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.wire.batches import batch
from tests.harness.wire.wire import request_frame
from tests.interop.differential.broker import CLOSED, TIME, Broker, Line
from tests.interop.differential.scenes import produce
from tests.interop.differential.scenes.fetch import fetch, of, part
from tests.interop.differential.scenes.produce import NEWEST_BY_NAME

LONG_MS = 9000
GOOD = batch(timestamp=TIME)


def wait_for(broker: Broker, topic: str, *parts: Any, **fields: Any) -> FetchRequest:
    return fetch(of(broker, topic, *parts), **{"min_bytes": 1, "max_wait_ms": LONG_MS, **fields})


def write(line: Line, label: str, topic: str, *, partition: int = 0, records: bytes = GOOD) -> None:
    line.ask(label, produce.request(topic, (partition, records)), NEWEST_BY_NAME)


def offsets(topic: str, *stamps: int) -> ListOffsetsRequest:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=stamp) for stamp in stamps]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])


def named(topic: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=topic)])


def woken(broker: Broker) -> None:
    topic = broker.topic("woken", 3)
    writer = broker.line()
    for number, version in enumerate((4, 7, 12, 13, 18)):
        readers = [broker.line() for _ in range(3)]
        for reader in readers:
            reader.post(wait_for(broker, topic, part(0, number), part(1, number), part(2)), version)
        for reader in readers:
            reader.waits(f"v{version} no records")
        write(writer, f"v{version} written", topic, partition=number % 2)
        for reader in readers:
            reader.take(f"v{version} woken")
        write(writer, f"v{version} written for the next", topic, partition=1 - number % 2)


def min_bytes(broker: Broker) -> None:
    topic = broker.topic("min-bytes", 2)
    reader, writer = broker.line(), broker.line()
    reader.post(wait_for(broker, topic, part(0), part(1), min_bytes=len(GOOD) + 1), 12)
    write(writer, "one batch", topic)
    reader.waits("it is not enough")
    write(writer, "another in the other partition", topic, partition=1)
    reader.take("enough together")
    few = {"min_bytes": 100 * len(GOOD), "max_wait_ms": 700}
    reader.post(wait_for(broker, topic, part(0, 1), part(1, 1), **few), 12)
    write(writer, "too little", topic)
    reader.waits("it keeps waiting")
    reader.take("available records after the timeout")
    reader.post(wait_for(broker, topic, part(0, 2), part(1, 1), **few), 12)
    reader.take("nothing after the timeout")
    reader.post(wait_for(broker, topic, part(0, 0), part(1, 1), min_bytes=1), 12)
    reader.take("records are available already")
    reader.post(wait_for(broker, topic, part(0, 2), part(9)), 12)
    reader.take("an unknown partition does not wait")
    reader.post(wait_for(broker, topic, part(0, 2), part(1, 77)), 12)
    reader.take("out of range does not wait")
    limit = {"min_bytes": 100 * len(GOOD), "max_bytes": 2 * len(GOOD)}
    reader.post(wait_for(broker, topic, part(0, 2), **limit), 12)
    for _ in range(2):
        write(writer, "up to the limit", topic)
    reader.take("more than the limit is not waited for")


def committed(broker: Broker) -> None:
    topic = broker.topic("committed")
    reader, writer = broker.line(), broker.line()
    reader.post(wait_for(broker, topic, part(), isolation_level=1), 12)
    reader.waits("no records")
    write(writer, "written", topic)
    reader.take("woken")


def sessions(broker: Broker) -> None:
    topic = broker.topic("shared-session", 2)
    for version in (7, 12, 13, 18):
        first, second, writer = broker.line(), broker.line(), broker.line()

        def go_on(
            line: Line, label: str, epoch: int, session: int, version: int = version, **more: Any
        ) -> None:
            line.ask(f"v{version} {label}", fetch(session_id=session, session_epoch=epoch, **more), version)

        end = broker.call(offsets(topic, -1), 6).topics[0].partitions[0].offset
        opened = first.ask(
            f"v{version} opened", fetch(of(broker, topic, part(0, end), part(1)), session_epoch=0), version
        )
        session = opened.session_id
        go_on(second, "used from another connection", 1, session)
        go_on(first, "its own session epoch is old now", 1, session)
        second.post(fetch(session_id=session, session_epoch=2, min_bytes=1, max_wait_ms=LONG_MS), version)
        second.waits(f"v{version} nothing new")
        go_on(first, "the same epoch while the other waits", 2, session)
        write(writer, f"v{version} written", topic)
        second.take(f"v{version} woken")
        first.wire.close()
        go_on(second, "after its creator has disconnected", 3, session)
        third = broker.line()
        third.ask(f"v{version} closed", fetch(session_id=session, session_epoch=-1), version)
        go_on(second, "after another has closed it", 4, session)


def pipelined(broker: Broker) -> None:
    topic = broker.topic("pipelined")
    eager, other = broker.line(), broker.line()
    eager.post(wait_for(broker, topic, part()), 12)
    eager.post(named(topic), 12)
    eager.post(offsets(topic, -1), 6)
    other.ask("another is served", named(topic), 12)
    eager.waits("all requests after the fetch wait")
    write(other, "written", topic)
    for label in ("fetch", "metadata", "offsets"):
        eager.take(f"in order: {label}")
    for number in range(5):
        eager.post(produce.request(topic, (0, batch([(b"%d" % number, b"v")], timestamp=TIME))), 12)
    eager.post(fetch(of(broker, topic, part())), 12)
    for number in range(5):
        eager.take(f"produce {number}")
    eager.take("records produced before are fetched")
    eager.post(produce.request("nobody", (0, GOOD)), 12)
    eager.post(produce.request(topic, (0, GOOD)), 12)
    eager.take("an invalid request")
    eager.take("the next request")


def deleted_while_waiting(broker: Broker) -> None:
    for version in (4, 12, 13, 18):
        topic, kept = broker.topic(f"wait-deleted-{version}"), broker.topic(f"wait-kept-{version}")
        reader, other = broker.line(), broker.line()
        both = (of(broker, topic, part()), of(broker, kept, part()))
        reader.post(fetch(*both, min_bytes=1, max_wait_ms=LONG_MS), version)
        reader.waits(f"v{version} no records")
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
        other.ask(f"v{version} deleted", request, 5)
        reader.take(f"v{version} the wait ends")


def records_deleted(broker: Broker) -> None:
    topic = broker.topic("cut")
    broker.fill(topic, 4)
    reader, other = broker.line(), broker.line()

    def cut(offset: int) -> None:
        wanted = DeleteRecordsTopic(
            name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
        )
        other.ask(f"deleted before {offset}", DeleteRecordsRequest(topics=[wanted], timeout_ms=5000), 2)

    reader.ask("before", fetch(of(broker, topic, part(0, 0))), 12)
    cut(3)
    reader.ask("from a deleted offset", fetch(of(broker, topic, part(0, 0))), 12)
    reader.ask("from the new start", fetch(of(broker, topic, part(0, 3))), 12)
    opened = reader.ask("a session", fetch(of(broker, topic, part(0, 8)), session_epoch=0), 12)
    cut(5)
    reader.ask(
        "the new log start offset is returned", fetch(session_id=opened.session_id, session_epoch=1), 12
    )
    reader.post(wait_for(broker, topic, part(0, 8)), 12)
    reader.waits("at the end")
    cut(8)
    reader.waits("a deletion does not complete the fetch")
    write(other, "written", topic)
    reader.take("completed, with the new log start offset")
    other.ask("offsets", offsets(topic, -2, -1), 6)


def idempotent(broker: Broker) -> None:
    topic = broker.topic("split")
    lines = {"one": broker.line(), "two": broker.line()}
    watcher = broker.line()
    described = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    for number, (who, sequence, epoch) in enumerate((
        ("one", 0, 0), ("two", 1, 0), ("two", 0, 0), ("one", 1, 0), ("one", 3, 0), ("two", 2, 0),
        ("one", 3, 0), ("two", 0, 1), ("one", 4, 0), ("one", 1, 1), ("two", 1, 1), ("one", 3, 1),
        ("two", 5, 2), ("one", 0, 2),
    )):  # fmt: skip
        records = batch(timestamp=TIME, producer_id=90_001, producer_epoch=epoch, sequence=sequence)
        write(lines[who], f"{number} {who}, sequence {sequence}, epoch {epoch}", topic, records=records)
        watcher.ask(f"{number} producers", described, 0)
        watcher.ask(f"{number} offsets", offsets(topic, -2, -1, -3), 7)
    for sequence in range(1, 6):
        records = batch(timestamp=TIME, producer_id=90_001, producer_epoch=2, sequence=sequence)
        lines["one"].post(produce.request(topic, (0, records)), 12)
    for sequence in range(1, 6):
        lines["one"].take(f"five in flight, {sequence}")
    for sequence in range(1, 6):
        records = batch(timestamp=TIME, producer_id=90_001, producer_epoch=2, sequence=sequence)
        lines["two"].post(produce.request(topic, (0, records)), 12)
    for sequence in range(1, 6):
        lines["two"].take(f"sent again on another connection, {sequence}")
    produce.look(broker, "all batches", topic)


def without_acks(broker: Broker) -> None:
    topic, quiet = broker.topic("silent"), broker.topic("quiet")
    for label, records, name in (
        ("good", GOOD, topic), ("wrong checksum", batch(crc=1), topic), ("unknown topic", GOOD, "nobody"),
    ):  # fmt: skip
        line, other = broker.line(), broker.line()
        other.post(wait_for(broker, quiet, part()), 12)
        line.wire.post(produce.request(name, (0, records), acks=0), 12)
        line.ask(f"{label}, the next request", InitProducerIdRequest(transactional_id=""), 4)
        other.waits(f"{label}, another connection")
        other.wire.close()
    produce.look(broker, "the stored batches", topic)


def half_a_frame(broker: Broker) -> None:
    topic = broker.topic("half")
    frame = request_frame(named(topic), 12, 77)
    whole = len(frame).to_bytes(4, "big") + frame
    for sent in (1, 3, 4, 10, len(whole) - 1):
        slow, other = broker.line(), broker.line()
        slow.wire.send(whole[:sent])
        slow.waits(f"{sent} bytes")
        write(other, f"{sent} bytes, another writes", topic)
        other.ask(f"{sent} bytes, another asks", named(topic), 12)
        slow.wire.send(whole[sent:])
        broker.note(f"{sent} bytes and the rest", slow.wire.answer(named(topic), 12, 77))
        slow.wire.send(whole[:sent])
        slow.wire.abort()
        write(other, f"{sent} bytes, given up", topic)
    for label, size in (("a negative length", -1), ("too long", 2**31 - 1)):
        line, other = broker.line(), broker.line()
        line.wire.send(size.to_bytes(4, "big", signed=True) + b"\0" * 8)
        broker.note(label, CLOSED if line.wire.is_closed_by_peer() else "an answer")
        write(other, f"{label}, another writes", topic)


SCENES = {
    "several connections, completed fetches": woken,
    "several connections, min bytes": min_bytes,
    "several connections, read committed": committed,
    "several connections, fetch sessions": sessions,
    "several connections, pipelined": pipelined,
    "several connections, deleted topics": deleted_while_waiting,
    "several connections, deleted records": records_deleted,
    "several connections, idempotence": idempotent,
    "several connections, without acks": without_acks,
    "several connections, half a frame": half_a_frame,
}
