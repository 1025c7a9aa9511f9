"""Fetches of old offsets while the remote tier cannot be read: they wait, and end in time."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.server.tiered.store import StoreCalls
from moldau.storage.segment.txn_index import TransactionIndex
from tests.harness.tiered.in_process import TieredNode, another_client, tiered_node, until
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request

_WAIT = {"remote__fetch__max__wait__ms": "600"}


async def _exhaust_quota(world: TieredNode, topic_id: bytes) -> None:
    first = await world.fetch((topic_id, 0))
    assert first.responses[0].partitions[0].records
    await until(lambda: world.tiered.fetch_quota.throttle_ms() > 1000)


def test_a_throttled_fetch_is_held_as_long_as_the_store_may_take(tmp_path: Path) -> None:
    async def scenario() -> None:
        quota = {"remote__log__manager__fetch__max__bytes__per__second": "1000"}
        async with tiered_node(tmp_path, **_WAIT, **quota) as world:
            topic_id = await world.fill("t")
            await _exhaust_quota(world, topic_id)
            for wait_ms, least, most in ((200, 0.2, 0.55), (5000, 0.6, 1.5)):
                began = time.monotonic()
                answer = await world.fetch((topic_id, 1), wait_ms=wait_ms)
                assert least <= time.monotonic() - began < most
                assert not answer.responses[0].partitions[0].records
            # A client that waits for nothing is answered at once.
            began = time.monotonic()
            await world.fetch((topic_id, 1), wait_ms=5000, min_bytes=0)
            assert time.monotonic() - began < 0.5

    asyncio.run(scenario())


def test_a_fetch_is_held_while_too_many_reads_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tiered_node(tmp_path, **_WAIT, remote__log__reader__max__pending__tasks="1") as world:
            topic_id = await world.fill("t")
            world.tiered.store.pending_reads += 1
            began = time.monotonic()
            answer = await world.fetch((topic_id, 0), wait_ms=5000)
            assert time.monotonic() - began >= 0.6
            assert not answer.responses[0].partitions[0].records
            world.tiered.store.pending_reads -= 1
            answer = await world.fetch((topic_id, 0), wait_ms=5000)
            assert answer.responses[0].partitions[0].records

    asyncio.run(scenario())


def test_local_records_end_the_wait_for_the_remote_tier(tmp_path: Path) -> None:
    async def scenario() -> None:
        wait = {"remote__fetch__max__wait__ms": "20000"}
        quota = {"remote__log__manager__fetch__max__bytes__per__second": "1000"}
        async with tiered_node(tmp_path, **wait, **quota) as world, another_client(world) as other:
            tiered, local = await world.fill("t"), await world.create("local", {})
            await _exhaust_quota(world, tiered)
            waiting = asyncio.create_task(world.fetch((tiered, 1), (local, 0), wait_ms=20_000))
            records = batch([(b"k", b"v")])
            partition = world.node.broker.replicas.by_name("local", 0)
            await until(lambda: len(partition.progress.high_watermark))
            # Records that the fetch cannot read do not end it.
            await other.produce("t", 1, size=10)
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await other.connection.call(produce_request("local", records), 12)
            await asyncio.wait_for(waiting, 5)

    asyncio.run(scenario())


def test_aborted_transactions_are_looked_up_in_one_turn_of_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []
    threads: set[threading.Thread] = set()
    read, collect = StoreCalls.read, TransactionIndex.collect

    async def counted(self: StoreCalls, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        turns.append(fn.__name__)
        return await read(self, fn, *args, **kwargs)

    def noted(self: TransactionIndex, *args: int) -> Any:
        threads.add(threading.current_thread())
        return collect(self, *args)

    monkeypatch.setattr(StoreCalls, "read", counted)
    monkeypatch.setattr(TransactionIndex, "collect", noted)

    async def scenario() -> None:
        async with tiered_node(tmp_path) as world:
            topic_id = await world.fill("t", 8)
            answer = await world.fetch((topic_id, 0), wait_ms=5000, committed=True)
            assert answer.responses[0].partitions[0].records
            assert [turn for turn in turns if turn != "read_ahead"] == ["read", "_aborted_between"]
            assert threads
            assert threading.main_thread() not in threads

    asyncio.run(scenario())
