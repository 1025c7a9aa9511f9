"""Recorded data folders of Apache Kafka and earlier versions, and their creation.

Each is an archive in `tests/data/` with a JSON file: the inventory that the broker that wrote the folder gave
before it stopped. `python -m tests.harness.folders.data_folders NAME ...` creates them
again; without names, all of this version.
It needs Apache Kafka's jars (`KAFKA_LIBS`). Folders of earlier versions of Moldau stay as they are:
they cannot be made again.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import moldau
from tests.harness.apache.node import kafka_libs
from tests.harness.apache.shared_folder import APACHE, MOLDAU, SharedFolder
from tests.harness.folders.inventory import Inventory, stored_bytes, survey_records, take_inventory
from tests.harness.folders.metadata_folder import (
    append_records,
    lasting_records,
    make_snapshot,
    records_of_every_type,
)
from tests.harness.folders.workload import Ledger, begin, wait_for_checkpoints, work
from tests.harness.wire.requests import create_and_wait

DATA = Path(__file__).parents[2] / "data"
LOG_DIRECTORIES = ("a", "b")

CONFIG: dict[str, str | int | bool] = {
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
    "log.flush.start.offset.checkpoint.interval.ms": 200,
    "log.initial.task.delay.ms": 100,
    "log.index.size.max.bytes": 4096,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 1000}
_QUIET = {"log_level": 0}


def clean(shared: SharedFolder, broker: str) -> Inventory:
    """Two workloads, clean stops: codecs, nulls, segments, deleted records, a compacted topic, configs."""
    return _written(shared, broker, lambda: shared.stop())


def killed(shared: SharedFolder, broker: str) -> Inventory:
    """The same, stopped by SIGKILL, with metadata snapshots."""
    shared.reconfigure(SNAPSHOTS)
    return _written(shared, broker, lambda: shared.kill())


def _written(shared: SharedFolder, broker: str, end: Callable[[], None]) -> Inventory:
    shared.format(broker)
    ledger = Ledger()
    for turn in range(2):
        bootstrap = shared.start(broker)
        if turn == 0:
            begin(bootstrap)
        work(bootstrap, turn, ledger)
        inventory = take_inventory(bootstrap)
        inventory["last_values"] = last_values(bootstrap, "compacted")
        if turn == 0:
            shared.stop()
    wait_for_checkpoints(shared, inventory)
    end()
    return inventory


def groups(shared: SharedFolder, broker: str) -> Inventory:
    """Committed offsets of two groups; transactions committed, aborted and left open."""
    shared.format(broker)
    bootstrap = shared.start(broker)
    create_and_wait(bootstrap, "orders", 2)
    write_transactions(bootstrap, "orders")
    for group, offset in (("readers", 3), ("writers", 5)):
        commit_offsets(bootstrap, group, "orders", offset)
    inventory = take_inventory(bootstrap)
    inventory["groups"] = {
        group: group_offsets(bootstrap, group, "orders") for group in ("readers", "writers")
    }
    shared.stop()
    return inventory


def metadata(shared: SharedFolder, broker: str) -> Inventory:
    """Metadata records of every type, and the broker's latest snapshot of them."""
    shared.reconfigure(SNAPSHOTS | {"metadata.log.max.record.bytes.between.snapshots": 1})
    shared.format(broker)
    bootstrap = shared.start(broker)
    create_and_wait(bootstrap, "orders")
    shared.stop()
    append_records(shared.dirs[0], records_of_every_type())
    make_snapshot(shared.start(broker), shared.dirs[0])
    shared.stop()
    return {"lasting_records": lasting_records(shared.dirs[0])}


def write_transactions(bootstrap: str, topic: str) -> None:
    for number, end in enumerate(("commit", "abort", "commit", "leave open")):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t{number}", **_QUIET})
        producer.init_transactions(60)
        producer.begin_transaction()
        for n in range(6):
            producer.produce(topic, f"{end} {n}", key=str(n), partition=n % 2)
        assert producer.flush(60) == 0
        if end == "commit":
            producer.commit_transaction(60)
        elif end == "abort":
            producer.abort_transaction(60)


def commit_offsets(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **_QUIET})
    places = [TopicPartition(topic, partition, offset, f"of {group}") for partition in range(2)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def group_offsets(bootstrap: str, group: str, topic: str) -> list[Any]:
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition) for partition in range(2)])
    found = admin.list_consumer_group_offsets([asked])[group].result(60).topic_partitions
    return [[each.partition, each.offset, each.metadata] for each in found]


def last_values(bootstrap: str, topic: str) -> dict[str, str]:
    """Return the value that compaction must keep for every key."""
    values = {key: value for _, _, key, value, _ in survey_records(stored_bytes(bootstrap, topic))}
    return {key.decode(): value.decode() for key, value in sorted(values.items()) if value is not None}


_THEIRS, _OURS = "apache-4.3.0", f"moldau-{moldau.__version__}"
FOLDERS: Mapping[str, tuple[str, Callable[[SharedFolder, str], Inventory]]] = {
    f"{_THEIRS}-clean": (APACHE, clean),
    f"{_THEIRS}-killed": (APACHE, killed),
    f"{_THEIRS}-groups": (APACHE, groups),
    f"{_THEIRS}-metadata": (APACHE, metadata),
    f"{_OURS}-clean": (MOLDAU, clean),
    f"{_OURS}-killed": (MOLDAU, killed),
    f"{_OURS}-metadata": (MOLDAU, metadata),
}


def make(name: str, into: Path = DATA) -> None:
    broker, write = FOLDERS[name]
    with tempfile.TemporaryDirectory() as folder, SharedFolder(Path(folder), kafka_libs(), CONFIG) as shared:
        inventory = write(shared, broker)
        into.mkdir(parents=True, exist_ok=True)
        pack(Path(folder), into / f"{name}.tar.xz")
    (into / f"{name}.json").write_text(json.dumps(inventory, indent=1) + "\n")


def pack(folder: Path, archive: Path) -> None:
    """Pack the log directories without locks, owners and times: the same files give the same archive."""

    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return None if member.name.endswith("/.lock") else member

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for name in LOG_DIRECTORIES:
            tar.add(folder / name, name, filter=anonymous)


def unpack(name: str, folder: Path) -> Inventory:
    """Unpack the log directories of a recorded folder; return them and their inventory."""
    with tarfile.open(DATA / f"{name}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    inventory: Inventory = json.loads((DATA / f"{name}.json").read_text())
    return inventory


def main(names: list[str]) -> None:
    for name in names or FOLDERS:
        make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
