"""Our mirror and MirrorMaker 2 replace each other, between clusters of both kinds.

Formats are compared by exchange: each continues where the other stopped, and MirrorMaker 2's client reads
what ours wrote.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.topic_types import NewTopic
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.mirror.records.checkpoint import read_checkpoint
from moldau.pipelines.mirror.records.source_offset import read_source_offset
from tests.harness.apache.mirror_maker import MirrorMaker2
from tests.harness.apache.node import java_command
from tests.harness.mirror import MirrorProcess, mm2_properties, produce, read_all, values_of
from tests.harness.waiting import eventually
from tests.interop.mirror.conftest import Pair

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

_CLIENTS = Path(__file__).parents[1] / "java" / "MirrorClients.java"


def ask_client(libs: Path, bootstrap: str, source: str, group: str) -> dict[str, str]:
    """Return what MirrorMaker 2's client finds on a cluster."""
    command = java_command(libs, str(_CLIENTS), source, group, f"bootstrap.servers={bootstrap}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)


def commit(admin: Any, group: str, topic: str, offset: int) -> None:
    wanted = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "note")}
    assert set(admin.alter_group_offsets(group, wanted).values()) == {None}


def committed(admin: Any, group: str, topic: str) -> int | None:
    found = checked(admin.list_group_offsets(group)).get(TopicPartition(topic, 0))
    return None if found is None else int(found.offset)


def checkpoint(bootstrap: str, source: str, group: str) -> tuple[int, int] | None:
    """Return the offsets of the newest checkpoint of a group."""
    found = [
        read_checkpoint(each.key(), each.value())
        for each in read_all(bootstrap, f"{source}.checkpoints.internal")
    ]
    mine = [each for each in found if each.group == group]
    return (mine[-1].upstream_offset, mine[-1].downstream_offset) if mine else None


def stored(bootstrap: str, source: str, topic: str, partitions: int = 3) -> int:
    """Return the highest stored source offset of partition 0 of a topic."""
    found = [
        read_source_offset(source, each.key(), each.value())
        for partition in range(partitions)
        for each in read_all(bootstrap, f"mm2-offsets.{source}.internal", partition)
    ]
    return max((each.offset for each in found if each and each.partition.topic == topic), default=-1)


def exists(admin: Any, topic: str) -> bool:
    return topic in admin.list_topics()


class Swapped:
    """A topic that both mirrors copy in turn, without copying a record twice."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._produced: list[str] = []

    def produce(self, *values: str) -> int:
        self._produced += values
        produce(self._pair.a, "swapped", list(values))
        return len(self._produced)

    def wait_copied(self, mirror: Any) -> None:
        """Wait until the target has the records and their source offset."""

        def copied() -> bool:
            exists_there = exists(self._pair.admin_b, "m.swapped")
            return exists_there and values_of(self._pair.b, "m.swapped") == self._produced

        eventually(copied, timeout=120, every=0.3, what=mirror.log[-3000:])
        last = len(self._produced) - 1
        eventually(lambda: stored(self._pair.b, "m", "swapped") == last, what=mirror.log[-3000:])

    def wait_translated(self, mirror: Any, group: str, offset: int) -> None:
        """Wait for an offset of a group on the target, which never is past its offset on the source."""
        found = eventually(
            lambda: committed(self._pair.admin_b, group, "m.swapped"), timeout=90, what=mirror.log[-3000:]
        )
        assert offset - 101 < found <= offset


def test_each_continues_where_the_other_stopped(pair: Pair, mirror_libs: Path, tmp_path: Path) -> None:
    settings = {"m->n.topics": "swapped", "sync.group.offsets.enabled": "true"}
    properties = mm2_properties(pair.a, pair.b, settings, source="m", target="n")
    checked(pair.admin_a.create_topics([NewTopic("swapped", 1)]))
    ours, theirs = MirrorProcess(tmp_path, properties), MirrorMaker2(mirror_libs, tmp_path, properties)
    swapped = Swapped(pair)
    for turn, name in enumerate(("ours", "theirs", "ours", "theirs")):
        mirror: Any = ours if name == "ours" else theirs
        offset = swapped.produce(*(f"{turn}-{number}" for number in range(100)))
        commit(pair.admin_a, f"turn{turn}", "swapped", offset)
        with mirror:
            swapped.wait_copied(mirror)
            swapped.produce(f"{turn}-last")
            swapped.wait_copied(mirror)
            swapped.wait_translated(mirror, f"turn{turn}", offset)
            mirror.stop()


def test_mirror_makers_client_reads_our_topics(pair: Pair, mirror_libs: Path, tmp_path: Path) -> None:
    properties = mm2_properties(pair.a, pair.b, {"c->d.topics": "read"}, source="c", target="d")
    checked(pair.admin_a.create_topics([NewTopic("read", 1)]))
    produce(pair.a, "read", [str(number) for number in range(150)])
    checked(pair.admin_a.delete_records({TopicPartition("read", 0): 50}))
    commit(pair.admin_a, "reader-group", "read", 120)
    with MirrorProcess(tmp_path, properties) as mirror:
        eventually(lambda: exists(pair.admin_b, "c.read") and exists(pair.admin_b, "c.heartbeats"))
        eventually(
            lambda: checkpoint(pair.b, "c", "reader-group") == (120, 70), timeout=60, what=mirror.log[-3000:]
        )
        eventually(lambda: len(read_all(pair.b, "heartbeats")) > 1)
        found = ask_client(mirror_libs, pair.b, "c", "reader-group")
    assert found["offsets"] == "{c.read-0=70 note}"
    assert "c.read" in found["remote"]
    assert {"c.heartbeats", "heartbeats"} <= set(found["heartbeats"].strip("[]").split(", "))
    assert "c.checkpoints.internal" in found["checkpoints"]
    assert "c" in found["upstream"].strip("[]").split(", ")
    assert found["hops"] == "1"


def test_mirror_maker_translates_by_our_offset_syncs(pair: Pair, mirror_libs: Path, tmp_path: Path) -> None:
    """Checkpoints that MirrorMaker 2 writes after ours copied the records."""
    properties = mm2_properties(pair.a, pair.b, {"o->p.topics": "synced"}, source="o", target="p")
    checked(pair.admin_a.create_topics([NewTopic("synced", 1)]))
    produce(pair.a, "synced", [str(number) for number in range(150)])
    checked(pair.admin_a.delete_records({TopicPartition("synced", 0): 50}))
    with MirrorProcess(tmp_path, properties) as mirror:
        eventually(lambda: exists(pair.admin_b, "o.synced"))
        eventually(lambda: len(read_all(pair.b, "o.synced")) == 100, what=mirror.log[-3000:])
        eventually(lambda: stored(pair.b, "o", "synced") == 149)
    commit(pair.admin_a, "late-group", "synced", 150)
    with MirrorMaker2(mirror_libs, tmp_path, properties) as theirs:
        eventually(
            lambda: checkpoint(pair.b, "o", "late-group") == (150, 100), timeout=120, what=theirs.log[-3000:]
        )
    assert len(read_all(pair.b, "o.synced")) == 100


def test_records_between_clusters(pair: Pair, tmp_path: Path) -> None:
    """Compression, headers, timestamps, transactions, compaction and kill -9, with our mirror."""
    settings = {"s->t.topics": "kinds.*", "exactly.once.source.support": "enabled"}
    properties = mm2_properties(pair.a, pair.b, settings, source="s", target="t")
    compact = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
    }
    checked(
        pair.admin_a.create_topics(
            [NewTopic("kinds", 2), NewTopic("kinds-txn", 1), NewTopic("kinds-compacted", 1, configs=compact)]
        )
    )
    _produce_kinds(pair.a)
    _produce_transactions(pair.a)
    _produce_compacted(pair.a)
    mirror = MirrorProcess(tmp_path, properties).start()
    try:
        eventually(lambda: _same(pair, "kinds", 2), timeout=120, what=mirror.log[-3000:])
        mirror.kill()
        produce(pair.a, "kinds", ["after the kill"])
        mirror.start()
        eventually(lambda: _same(pair, "kinds", 2), timeout=120, what=mirror.log[-3000:])
        eventually(lambda: _same(pair, "kinds-txn", 1), timeout=60, what=mirror.log[-3000:])
        wanted = _latest(pair.a, "kinds-compacted")
        eventually(lambda: _latest(pair.b, "s.kinds-compacted") == wanted, timeout=60)
    finally:
        mirror.kill()
    assert [each.value() for each in read_all(pair.b, "s.kinds-txn")] == [b"0", b"2", b"4"]


def _produce_kinds(bootstrap: str) -> None:
    for number, codec in enumerate(("none", "gzip", "lz4", "snappy", "zstd")):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
        for each in range(40):
            producer.produce(
                "kinds",
                None if each == 3 else b"v" * 2000,
                key=f"{codec}{each}".encode(),
                partition=each % 2,
                timestamp=1_700_000_000_000 + number * 1000 + each,
                headers=[("h", b"x"), ("h", None), ("empty", b"")],
            )
        assert producer.flush(30) == 0


def _produce_transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mirror-kinds"})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        producer.produce("kinds-txn", str(number).encode(), partition=0)
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def _produce_compacted(bootstrap: str) -> None:
    for _ in range(3):
        produce(bootstrap, "kinds-compacted", ["a", "b", "c", "d"])

    def compacted() -> bool:
        produce(bootstrap, "kinds-compacted", ["roll"])
        return [each.value() for each in read_all(bootstrap, "kinds-compacted")].count(b"a") == 1

    eventually(compacted, timeout=120, every=0.3)


def _same(pair: Pair, topic: str, partitions: int) -> bool:
    if not exists(pair.admin_b, f"s.{topic}"):
        return False
    return all(
        [_content(each) for each in read_all(pair.a, topic, partition)]
        == [_content(each) for each in read_all(pair.b, f"s.{topic}", partition)]
        for partition in range(partitions)
    )


def _content(message: Any) -> tuple[Any, ...]:
    return (message.key(), message.value(), message.headers(), message.timestamp())


def _latest(bootstrap: str, topic: str) -> dict[Any, Any]:
    return {each.key(): each.value() for each in read_all(bootstrap, topic)}
