"""Apache Kafka and Moldau run alternately on one folder with one properties file; nothing is lost or changed.

Each one writes more data, and the next must return all of it as the previous one did. Each run ends with
a clean stop or with `kill -9`, in every combination.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.apache.shared_folder import APACHE, CLUSTER_ID, MOLDAU, SharedFolder
from tests.harness.folders.inventory import Inventory, take_inventory
from tests.harness.folders.inventory_comparison import compare
from tests.harness.folders.workload import Ledger, begin, wait_for_checkpoints, work

pytestmark = pytest.mark.interop

CONFIG: dict[str, str | int | bool] = {
    # A metadata snapshot after nearly every change, and short timeouts for killed brokers.
    "metadata.log.max.record.bytes.between.snapshots": 2000,
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
    "log.flush.start.offset.checkpoint.interval.ms": 200,
    "log.segment.delete.delay.ms": 1000,
    "log.initial.task.delay.ms": 100,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 2,
}


def check_ledger(bootstrap: str, ledger: Ledger, inventory: Inventory) -> None:
    starts, ends = (
        {
            (name, int(index)): partition[edge]
            for name, topic in inventory["topics"].items()
            for index, partition in topic["partitions"].items()
        }
        for edge in ("start", "end")
    )
    ledger.check(bootstrap, starts, ends)


def check_files(shared: SharedFolder, inventory: Inventory, killed: bool) -> None:
    """Check the checkpoints and other files of a stopped broker."""
    for folder in shared.dirs:
        mark = folder / ".kafka_cleanshutdown"
        assert mark.exists() != killed
        assert killed or json.loads(mark.read_text()).keys() == {"version", "brokerEpoch"}
    ends = set()
    for name, topic in inventory["topics"].items():
        for index, partition in topic["partitions"].items():
            (folder,) = (each for each in shared.dirs if (each / f"{name}-{index}").is_dir())
            identity = (folder / f"{name}-{index}" / "partition.metadata").read_text()
            assert identity.splitlines() == ["version: 0", f"topic_id: {topic['id']}"]
            ends.add(f"{name} {index} {partition['end']}")
    if killed:
        return  # The files are written periodically; a short run may leave none.
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        versions, lines = set(), set()
        for folder in shared.dirs:
            version, _, *entries = (folder / checkpoint).read_text().splitlines()
            versions.add(version)
            lines |= set(entries)
        assert versions == {"0"}
        assert lines == ends, checkpoint


def quorum_epoch(shared: SharedFolder) -> int:
    state = json.loads((shared.metadata / "quorum-state").read_text())
    assert state.keys() == {"leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"}
    return int(state["leaderEpoch"])


def recovered(shared: SharedFolder) -> bool:
    """Whether the broker has recovered logs after an unclean shutdown."""
    said = shared.printed()
    return "no clean shutdown file was found" in said or "not shut down cleanly: recovering" in said


CLEAN, KILL = "clean", "kill"
TURNS = {
    "formatted by Apache": [
        (APACHE, CLEAN),
        (MOLDAU, CLEAN),
        (APACHE, KILL),
        (MOLDAU, KILL),
        (APACHE, CLEAN),
        (MOLDAU, CLEAN),
    ],
    "formatted by Moldau": [
        (MOLDAU, KILL),
        (APACHE, KILL),
        (MOLDAU, CLEAN),
        (APACHE, CLEAN),
        (MOLDAU, KILL),
        (APACHE, CLEAN),
    ],
}


@pytest.mark.timeout(200)
@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
def test_apache_kafka_and_moldau_alternate_on_one_folder(
    turns: list[tuple[str, str]], tmp_path: Path, libs: Path
) -> None:
    ledger = Ledger()
    before: Inventory = {}
    killed = False
    epochs: list[int] = []
    with SharedFolder(tmp_path, libs, CONFIG) as shared:
        shared.format(turns[0][0])
        for turn, (broker, ending) in enumerate(turns):
            bootstrap = shared.start(broker)
            assert recovered(shared) == killed
            now = take_inventory(bootstrap)
            assert now["cluster_id"] == CLUSTER_ID
            if not before:
                begin(bootstrap)
            else:
                compare(before, now, killed=killed)
                check_ledger(bootstrap, ledger, now)
            work(bootstrap, turn, ledger)
            before = take_inventory(bootstrap)
            if killed := ending == KILL:
                wait_for_checkpoints(shared, before)
                shared.kill()
            else:
                shared.stop()
            check_files(shared, before, killed)
            epochs.append(quorum_epoch(shared))
    assert epochs == sorted(set(epochs))
