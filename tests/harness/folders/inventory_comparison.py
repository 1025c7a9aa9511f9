"""The comparison of two brokers' inventories of one folder, with the permitted differences."""

from __future__ import annotations

from typing import Any

from tests.harness.folders.inventory import Inventory


def compare(before: Inventory, now: Inventory, *, killed: bool = False) -> None:
    """Require equal inventories, except for increased epochs."""
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
    if name.startswith("__") and now["end"] > before["end"]:
        # A coordinator may add to its topic as soon as it starts.
        changing |= {"bytes", "sha256", "newest", "end", "producers"}
    if name.startswith("compacted"):
        changing |= {"bytes", "sha256", "newest"}
    if killed and "producers" in before and (before["start"] or name.startswith("compacted")):
        # Recovery finds only the producers whose batches are still in the log.
        assert all(producer in before["producers"] for producer in now["producers"]), name
        assert before["producers"][-1:] == now["producers"][-1:], name
        changing |= {"producers"}
    for part in before.keys() - changing:
        assert now[part] == before[part], f"{name}: {part}"
