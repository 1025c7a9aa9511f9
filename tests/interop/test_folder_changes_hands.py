"""Apache Kafka and Moldau take turns on one folder with one properties file; nothing is lost or changed.

Each one writes more of everything, and the next must answer for all of it as the last one did. Turns end with
a clean stop or with `kill -9`, in every combination of who leaves the folder how, and who finds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.inventory import Inventory, take_inventory
from tests.harness.shared_folder import APACHE, CLUSTER_ID, MOLDAU, SharedFolder
from tests.harness.waiting import eventually
from tests.interop.turns import Ledger, begin, work

pytestmark = pytest.mark.interop

CONFIG: dict[str, str | int | bool] = {
    # A snapshot of the metadata after nearly every change, and no long wait for a broker that was killed.
    "metadata.log.max.record.bytes.between.snapshots": 2000,
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
    "log.flush.start.offset.checkpoint.interval.ms": 200,
    "log.segment.delete.delay.ms": 1000,
    "log.initial.task.delay.ms": 100,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 2,
}


def compare(before: Inventory, now: Inventory, *, killed: bool = False) -> None:
    """What the next broker says is what the last one said, but for epochs that grow."""
    for part in before:
        if part != "topics":
            assert now[part] == before[part], part
    assert list(now["topics"]) == list(before["topics"])
    for name, topic in before["topics"].items():
        found = now["topics"][name]
        assert (found["id"], found["internal"]) == (topic["id"], topic["internal"]), name
        assert list(found["partitions"]) == list(topic["partitions"]), name
        for index, partition in topic["partitions"].items():
            compare_partition(f"{name}-{index}", partition, found["partitions"][index], killed)


def compare_partition(name: str, before: dict[str, Any], now: dict[str, Any], killed: bool) -> None:
    assert now["leader_epoch"] >= before["leader_epoch"], name
    ends = before["epoch_ends"]
    assert now["epoch_ends"][: len(ends)] == ends, name
    changing = {"leader_epoch", "epoch_ends"}
    if name.startswith("compacted"):
        changing |= {"bytes", "sha256", "newest"}
    if killed and (before["start"] or name.startswith("compacted")):
        # Recovery knows those producers whose batches are still there.
        assert all(producer in before["producers"] for producer in now["producers"]), name
        assert before["producers"][-1:] == now["producers"][-1:], name
        changing |= {"producers"}
    for part in before.keys() - changing:
        assert now[part] == before[part], f"{name}: {part}"


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


def wait_for_checkpoints(shared: SharedFolder, inventory: Inventory) -> None:
    """Until the starts of all logs are in the files that are written from time to time."""
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
def test_they_take_turns(turns: list[tuple[str, str]], tmp_path: Path, libs: Path) -> None:
    ledger = Ledger()
    before: Inventory = {}
    killed = False
    with SharedFolder(tmp_path, libs, CONFIG) as shared:
        shared.format(turns[0][0])
        for turn, (broker, ending) in enumerate(turns):
            bootstrap = shared.start(broker)
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
