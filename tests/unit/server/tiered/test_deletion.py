"""Deletions that were decided a while ago."""

from __future__ import annotations

import asyncio
from pathlib import Path

from moldau.server.tiered.deletion import RemoteDeletion
from tests.harness.tiered.in_process import tiered_node, until
from tests.harness.tiered.segments import DELETED, FINISHED, STARTED
from tests.harness.tiered.worlds import stored


def test_a_deletion_begins_with_the_state_of_the_segment_by_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tiered_node(tmp_path) as world:
            await world.fill("t")
            deletion = RemoteDeletion(world.tiered.metadata, world.tiered.store)
            partition_id = world.partition("t").id
            remote = world.tiered.metadata.loaded(partition_id)
            first, *_ = remote.segments
            assert first.state is FINISHED
            # It was taken for an incomplete copy, and its leader has completed it since.
            await deletion.delete(first._replace(state=STARTED))
            assert stored(tmp_path / "remote", "t") == [0, 1, 2]
            assert remote.get(first.id) == first
            await deletion.delete(first)
            assert stored(tmp_path / "remote", "t") == [1, 2]
            await until(lambda: remote.get(first.id) is None)
            # Another broker was faster.
            end = await world.tiered.metadata.topic.end_offset(0)
            await deletion.delete(first._replace(state=DELETED))
            assert await world.tiered.metadata.topic.end_offset(0) == end

    asyncio.run(scenario())
