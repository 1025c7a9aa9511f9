"""Segments that arrive in the store after their deletion; what other clusters keep there is not touched."""

from __future__ import annotations

import asyncio
from pathlib import Path

from moldau.base.ids import Uuid
from moldau.tiered.stores.folder import FolderStore
from tests.harness.tiered.in_process import tiered_node, until
from tests.harness.tiered.segments import Source, segment
from tests.harness.tiered.worlds import stored


def test_a_segment_that_arrives_after_its_deletion_is_deleted_again(tmp_path: Path) -> None:
    remote = tmp_path / "remote"

    async def scenario() -> None:
        async with tiered_node(tmp_path) as world:
            await world.fill("t")
            first, *_ = sorted(remote.glob("kafka-tiered-storage/t-*/*.log"))
            late = first.read_bytes()
            log = world.node.broker.replicas.by_name("t", 0).usable_log()
            log.delete_records_before(1)
            # The record follows the deletion.
            await until(lambda: any(feed.has_deletions for feed in world.tiered.metadata.feeds))
            assert not first.exists()
            first.write_bytes(late)
            foreign = segment(9, 0, 9)
            FolderStore({"dir": str(remote)}).copy(foreign, Source(0, [b"x"]))
            unknown = foreign._replace(partition_id=world.partition("t").id, id=Uuid(b"u" * 16))
            FolderStore({"dir": str(remote)}).copy(unknown, Source(0, [b"x"]))
            await world.tiered.orphans.sweep()
            assert not first.exists()
            # Neither the segments of another cluster nor those without a record are deleted.
            assert stored(remote, "t") == [0, 1, 2]
            assert stored(remote, "orders") == [0]

    asyncio.run(scenario())


def test_the_store_is_searched_only_after_deletions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tiered_node(tmp_path, remote__log__manager__task__interval__ms="10") as world:
            topic_id = await world.fill("t")
            sweeps = 0

            async def count() -> None:
                nonlocal sweeps
                sweeps += 1

            world.tiered.orphans.sweep = count  # type: ignore[method-assign]
            await asyncio.sleep(2)
            assert (sweeps, bool(topic_id)) == (0, True)
            world.node.broker.replicas.by_name("t", 0).usable_log().delete_records_before(1)
            await until(lambda: sweeps > 0)

    asyncio.run(scenario())
