"""What a leader does when the store has a mistake, or returns too much."""

from __future__ import annotations

import asyncio
from pathlib import Path

from moldau.base.errors import ErrorCode
from tests.harness.tiered.faulty_store import BUG, METADATA, set_faults
from tests.harness.tiered.in_process import tiered_node, until
from tests.harness.tiered.worlds import stored

_FAULTY = {"remote__log__storage__manager__class__name": "tests.harness.tiered.faulty_store.FaultyStore"}


def test_a_mistake_in_a_store_is_a_failed_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tiered_node(tmp_path, **_FAULTY) as world:
            (tmp_path / "remote").mkdir(exist_ok=True)
            set_faults(tmp_path / "remote", BUG)
            topic_id = await world.create("t")
            await world.produce("t", 3)
            traffic = world.tiered.store.traffic.of("t")
            # Repeated with a back-off, and nothing is deleted locally.
            await until(lambda: traffic.copy_errors >= 2)
            assert world.partition("t").metadata_count > 0 or world.local_start("t") == 0
            set_faults(tmp_path / "remote")
            await until(lambda: world.local_start("t") == 2)
            set_faults(tmp_path / "remote", BUG)
            answer = await world.fetch((topic_id, 0), wait_ms=500)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert traffic.fetch_errors == 1
            set_faults(tmp_path / "remote")
            answer = await world.fetch((topic_id, 0), wait_ms=500)
            assert answer.responses[0].partitions[0].records

    asyncio.run(scenario())


def test_copying_stops_if_the_stores_metadata_is_too_large(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tiered_node(tmp_path, **_FAULTY) as world:
            (tmp_path / "remote").mkdir(exist_ok=True)
            set_faults(tmp_path / "remote", METADATA)
            await world.create("t")
            await world.produce("t", 4)
            traffic = world.tiered.store.traffic.of("t")
            await until(lambda: traffic.copy_errors and not stored(tmp_path / "remote", "t"))
            await until(lambda: traffic.delete_requests)
            # Not even after several intervals is there another attempt.
            await asyncio.sleep(1.5)
            assert (traffic.copy_requests, traffic.copy_errors) == (1, 1)
            assert world.local_start("t") == 0
            # The store finds its own metadata in the segment that it deletes.
            (deleted,) = world.faulty_store.deleted
            assert deleted.custom_metadata == b"x" * 1000
            assert world.partition("t").copy_lag_segments == 3

    asyncio.run(scenario())
