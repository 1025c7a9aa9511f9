"""Starting a node with tiered storage."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moldau.replication.replica_manager import ReplicaManager
from moldau.tiered.reading.index_cache import FOLDER
from tests.harness.tiered.in_process import tiered_node


def test_the_index_cache_is_emptied_before_replicas_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, found = ReplicaManager.begin_fetching, []

    def begin_fetching(self: ReplicaManager) -> None:
        found.append([path.name for path in cache.iterdir()])
        begin(self)

    async def start() -> Path:
        async with tiered_node(tmp_path) as world:
            return Path(world.node.broker.services.settings.config.log_dirs[0]) / FOLDER

    cache = asyncio.run(start())
    (cache / "0_old.indexes").touch()
    monkeypatch.setattr(ReplicaManager, "begin_fetching", begin_fetching)
    asyncio.run(start())
    assert found == [[]]
