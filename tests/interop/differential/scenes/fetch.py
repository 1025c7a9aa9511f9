"""Fetch in every version, with sessions and without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.interop.differential.broker import Broker

VERSIONS = range(4, 19)
UNKNOWN_ID = bytes(range(16))
UNKNOWN_TOPIC_OR_PARTITION = 3
PLENTY = 1 << 20


def part(partition: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    fields.setdefault("partition_max_bytes", PLENTY)
    return FetchPartition(partition=partition, fetch_offset=offset, **fields)


def fetch(*topics: FetchTopic, **fields: Any) -> FetchRequest:
    fields.setdefault("min_bytes", 0)
    return FetchRequest(topics=list(topics), **fields)


def of(broker: Broker, topic: str, *parts: FetchPartition) -> FetchTopic:
    return FetchTopic(topic=topic, topic_id=broker.topic_ids.get(topic, UNKNOWN_ID), partitions=list(parts))


def every_version(broker: Broker) -> None:
    topic = broker.topic("fetch", 2)
    broker.fill(topic, 3)
    for version in VERSIONS:
        _in_version(broker, version, topic)


def _in_version(broker: Broker, version: int, topic: str) -> None:
    def say(label: str, asked: FetchRequest) -> None:
        broker.ask(f"v{version} {label}", asked, version)

    for offset in (0, 1, 3, 5, 6, 7, 100, -1, -2):
        say(f"offset {offset}", fetch(of(broker, topic, part(0, offset))))
    say("read committed", fetch(of(broker, topic, part()), isolation_level=1))
    say("an unknown isolation level", fetch(of(broker, topic, part()), isolation_level=5))
    say("unknown topic", fetch(of(broker, "nobody", part())))
    say("unknown partition", fetch(of(broker, topic, part(), part(9))))
    say("negative partition", fetch(of(broker, topic, part(-1))))
    say("the same twice", fetch(of(broker, topic, part(0, 0), part(0, 4))))
    say("the same topic twice", fetch(of(broker, topic, part(0)), of(broker, topic, part(1))))
    say("no topics", fetch())
    say("zero id or no name", fetch(FetchTopic(partitions=[part()])))
    if version >= 9:
        for epoch in (0, 1, 7):
            asked = part(0, 0, current_leader_epoch=epoch)
            say(f"current leader epoch {epoch}", fetch(of(broker, topic, asked)))
    if version >= 12:
        for epoch in (0, 1, 7):
            for offset in (3, 6, 9):
                asked = part(0, offset, last_fetched_epoch=epoch)
                say(f"last fetched epoch {epoch} at {offset}", fetch(of(broker, topic, asked)))


def limits(broker: Broker) -> None:
    topic = broker.topic("limits", 3)
    for partition in range(3):
        broker.fill(topic, 3, partition=partition)
    size = len(batch([(b"k", b"v0"), (b"k", b"v1")]))
    parts = [part(n) for n in range(3)]
    for most in (0, 1, size, size + 1, 2 * size, 3 * size, 4 * size, -1):
        broker.ask(f"max bytes {most}", fetch(of(broker, topic, *parts), max_bytes=most), 12)
        small = [part(n, partition_max_bytes=most) for n in range(3)]
        broker.ask(f"partition max bytes {most}", fetch(of(broker, topic, *small)), 12)
    for least in (-1, 0, 1, size, 10 * size):
        asked = fetch(of(broker, topic, *parts), min_bytes=least, max_wait_ms=100)
        broker.ask(f"min bytes {least}", asked, 12)
        asked = fetch(of(broker, topic, part(0, 6)), min_bytes=least, max_wait_ms=100)
        broker.ask(f"min bytes {least} at the end", asked, 12)


def out_of_range(broker: Broker) -> None:
    topic = broker.topic("range")
    broker.fill(topic, 4)
    cut = DeleteRecordsPartition(partition_index=0, offset=3)
    broker.ask("delete", DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[cut])], timeout_ms=5000
    ), 2)  # fmt: skip
    for version in (4, 5, 11, 12, 13, 18):
        for offset in (0, 2, 3, 4, 7, 8, 9):
            asked = fetch(of(broker, topic, part(0, offset)), max_wait_ms=50, min_bytes=1)
            broker.ask(f"v{version} offset {offset}", asked, version)


def sessions(broker: Broker) -> None:
    topic = broker.topic("session", 3)
    other = broker.topic("session-other")
    broker.fill(topic, 2)
    for version in (7, 11, 12, 13, 16, 18):
        _session(broker, version, topic, other)


def _session(broker: Broker, version: int, topic: str, other: str) -> None:
    session = 0

    def say(
        label: str, *topics: FetchTopic, epoch: int, forget: Sequence[tuple[str, int]] = (), **fields: Any
    ) -> Any:
        forgotten = [
            ForgottenTopic(topic=name, topic_id=broker.topic_ids.get(name, UNKNOWN_ID), partitions=[index])
            for name, index in forget
        ]
        fields.setdefault("session_id", session)
        asked = fetch(*topics, session_epoch=epoch, forgotten_topics_data=forgotten, **fields)
        return broker.ask(f"v{version} {label}", asked, version)

    say("sessionless", of(broker, topic, part()), epoch=-1)
    say("full and empty", epoch=0)
    answer = say("full", of(broker, topic, part(0), part(1), part(2)), epoch=0)
    session = answer.session_id
    say("incremental, unchanged", epoch=1)
    say("incremental, moved on", of(broker, topic, part(0, 4)), epoch=2)
    say("incremental, at the end", epoch=3)
    broker.fill(topic, 1, partition=1)
    say("incremental, something arrived", epoch=4)
    say("incremental, still there", epoch=5)
    say("incremental, read", of(broker, topic, part(1, _end(broker, topic, 1))), epoch=6)
    say("wrong epoch", epoch=6)
    say("an unknown partition joins", of(broker, topic, part(9)), epoch=7)
    say("the error is returned again", epoch=8)
    say("it is forgotten", epoch=9, forget=[(topic, 9)])
    say("an unknown topic joins", of(broker, "nobody", part(0)), epoch=10)
    say("the error is returned again", epoch=11)
    say("it is forgotten", epoch=12, forget=[("nobody", 0)])
    say("another topic joins", of(broker, other, part(0)), epoch=13)
    say("out of range", of(broker, other, part(0, 100)), epoch=14)
    say("out of range is returned again", epoch=15)
    say("forgotten and requested at once", of(broker, other, part(0)), epoch=16, forget=[(other, 0)])
    say("the remaining partitions", epoch=17)
    say("forget an unknown partition", epoch=18, forget=[(other, 7)])
    say("all forgotten", epoch=19, forget=[(topic, 0), (topic, 1), (topic, 2), (other, 0)])
    say("after all was forgotten", epoch=20)
    answer = say("full again", of(broker, topic, part(0)), epoch=0)
    session = answer.session_id
    say("a future session epoch", epoch=5)
    say("negative epoch", epoch=-3)
    say("closed", of(broker, topic, part(0)), epoch=-1)
    say("after the close", epoch=1)
    say("an unknown id", epoch=1, session_id=12345)
    say("no id", epoch=1, session_id=0)
    answer = say("a session over another", of(broker, topic, part(0)), epoch=0)
    session = answer.session_id
    say("full with the id", of(broker, topic, part(0)), epoch=0)
    say("the former session is closed", epoch=1)
    answer = say("one for the other naming", of(broker, topic, part(0)), epoch=0)
    session = answer.session_id
    changed = fetch(of(broker, topic, part(0)), session_id=session, session_epoch=1)
    broker.ask(f"v{version} the session in another version", changed, 13 if version < 13 else 12)
    broker.ask(
        f"v{version} closed in another version",
        fetch(session_id=session, session_epoch=-1), 13 if version < 13 else 12,
    )  # fmt: skip


def deleted_topics(broker: Broker) -> None:
    for version in (11, 12, 13, 18):
        topic, other = broker.topic(f"deleted-{version}"), broker.topic(f"kept-{version}")
        broker.fill(topic, 2)
        old_id = broker.topic_ids[topic]
        asked = (of(broker, topic, part(0)), of(broker, other, part(0)))
        session = broker.ask(f"v{version} before", fetch(*asked, session_epoch=0), version).session_id
        broker.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
        eventually(lambda: _error(broker, topic) == UNKNOWN_TOPIC_OR_PARTITION)  # noqa: B023
        for epoch in (1, 2):
            request = fetch(session_id=session, session_epoch=epoch)
            broker.ask(f"v{version} deleted, {epoch}", request, version)
        broker.topic(f"deleted-{version}")
        broker.knows(f"{topic} before", old_id)
        for epoch in (3, 4):
            request = fetch(session_id=session, session_epoch=epoch)
            broker.ask(f"v{version} recreated, {epoch}", request, version)
        again = fetch(of(broker, topic, part(0)), session_id=session, session_epoch=5)
        broker.ask(f"v{version} asked for again", again, version)
        broker.ask(f"v{version} after that", fetch(session_id=session, session_epoch=6), version)


def _error(broker: Broker, topic: str) -> int:
    answer = broker.call(fetch(FetchTopic(topic=topic, partitions=[part(0)])), 12)
    return int(answer.responses[0].partitions[0].error_code)


def _end(broker: Broker, topic: str, partition: int) -> int:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return int(broker.call(request, 6).topics[0].partitions[0].offset)


def as_a_replica(broker: Broker) -> None:
    topic = broker.topic("replica")
    broker.fill(topic, 1)
    broker.ask("v12 replica 7", fetch(of(broker, topic, part()), replica_id=7), 12)
    broker.ask("v12 a debugging consumer", fetch(of(broker, topic, part()), replica_id=-2), 12)
    state = ReplicaState(replica_id=7, replica_epoch=1)
    broker.ask("v17 replica 7", fetch(of(broker, topic, part()), replica_state=state), 17)
    for version in (4, 9, 12, 14):
        for who in (1, 7):
            for label, asked in (
                ("its end", part(offset=2)),
                ("after its end", part(offset=9)),
                ("a negative offset", part(offset=-1)),
                ("a future epoch", part(current_leader_epoch=5)),
                ("an epoch", part(current_leader_epoch=0)),
            ):
                request = fetch(of(broker, topic, asked), replica_id=who)
                broker.ask(f"v{version} replica {who}, {label}", request, version)
    for version in (15, 17, 18):
        for who, epoch in ((1, 1), (1, -1), (7, -1), (7, 1)):
            state = ReplicaState(replica_id=who, replica_epoch=epoch)
            for label, asked in (
                ("from the start", part()),
                ("its end", part(offset=2)),
                ("a future epoch", part(current_leader_epoch=5)),
                ("another past", part(offset=1, last_fetched_epoch=3)),
            ):
                request = fetch(of(broker, topic, asked), replica_state=state)
                broker.ask(f"v{version} replica {who} with broker epoch {epoch}, {label}", request, version)
    broker.ask("a rack", fetch(of(broker, topic, part()), rack_id="r"), 12)


SCENES = {
    "fetch, every version": every_version,
    "fetch, limits": limits,
    "fetch, out of range": out_of_range,
    "fetch, sessions": sessions,
    "fetch, deleted topics": deleted_topics,
    "fetch, as a replica": as_a_replica,
}
