"""Apache Kafka and Moldau take turns on one folder with one properties file; nothing is lost or changed.

Each one writes more of everything, and the next must answer for all of it as the last one did. Turns end with
a clean stop or with `kill -9`, in every combination of who leaves the folder how, and who finds it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.inventory import Inventory, take_inventory
from tests.harness.inventory_comparison import compare
from tests.harness.shared_folder import APACHE, CLUSTER_ID, MOLDAU, SharedFolder
from tests.harness.turns import Ledger, begin, wait_for_checkpoints, work

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
