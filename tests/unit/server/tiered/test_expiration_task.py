"""Expired segments leave the remote store, whatever happens to copies."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.harness.tiered.faulty_store import COPY, set_faults
from tests.harness.tiered.in_process import tiered_node, until
from tests.harness.tiered.worlds import stored

_FAULTY = {"remote__log__storage__manager__class__name": "tests.harness.tiered.faulty_store.FaultyStore"}


def test_a_store_that_refuses_copies_is_emptied_by_retention(tmp_path: Path) -> None:
    remote = tmp_path / "remote"

    async def scenario() -> None:
        async with tiered_node(tmp_path, **_FAULTY) as world:
            await world.fill("t")
            set_faults(remote, COPY)
            await world.produce("t", 2)
            traffic = world.tiered.store.traffic.of("t")
            await until(lambda: traffic.copy_errors)
            world.log("t").delete_records_before(2)
            await until(lambda: traffic.delete_requests >= 2 and min(stored(remote, "t")) == 2)
            await world.alter("t", {"retention.bytes": "1"})
            await until(lambda: world.log("t").log_start_offset == 3)
            # What cannot be copied stays on the local disk.
            failed = traffic.copy_errors
            await until(lambda: traffic.copy_errors > failed and 2 not in stored(remote, "t"))
            assert world.local_start("t") == 3
            set_faults(remote)
            await until(lambda: world.log("t").log_start_offset == 5)

    asyncio.run(scenario())


def test_throttled_copies_do_not_delay_deletions(tmp_path: Path) -> None:
    remote = tmp_path / "remote"

    async def scenario() -> None:
        quota = {"remote__log__manager__copy__max__bytes__per__second": "1"}
        async with tiered_node(tmp_path, **quota) as world:
            await world.create("t")
            await world.produce("t", 4)
            await until(lambda: world.local_start("t") == 1)
            await until(lambda: world.tiered.copy_task.quota.throttled_ms)
            assert world.partition("t").copy_lag_segments == 2
            world.log("t").delete_records_before(1)
            await until(lambda: not stored(remote, "t"))

    asyncio.run(scenario())
