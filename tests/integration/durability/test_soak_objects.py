"""Tasks, timers and objects of a node do not grow over weeks of virtual time."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.fetch import FetchRequest
from tests.harness.nodes.node import connected
from tests.harness.nodes.shifted_time import (
    DAY,
    HOUR,
    MINUTE,
    PATIENT,
    SECOND,
    ShiftedLoop,
    TimedNode,
    run,
    timed_node,
)
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import FETCH_VERSION, fetch_request, produce_request
from tests.harness.wire.wire import request_frame
from tests.integration.durability.test_log_retention import configure, create


def ours() -> Counter[str]:
    """Count live objects of our classes, and tasks."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in names if name.startswith(("moldau.", "_asyncio.")))


def timers() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ShiftedLoop)
    return loop.pending_timers


async def one_round(node: TimedNode, number: int) -> None:
    name = f"round-{number}"
    await create(node, name, {"cleanup.policy": "compact", "segment.ms": str(MINUTE)})
    async with connected(node.node) as connection:
        for sequence in range(3):
            records = batch(
                [(b"k", b"v")], timestamp=node.time.time_ms(), producer_id=1000 + number, producer_epoch=0,
                sequence=sequence,
            )  # fmt: skip
            answer = await connection.call(produce_request(name, records), 12)
            assert answer.responses[0].partition_responses[0].error_code == 0
            await node.time.passes(2 * MINUTE, step=30 * SECOND)
        opening = fetch_request(name)
        opening.session_epoch = 0
        session = (await connection.call(opening, FETCH_VERSION)).session_id
        await connection.call(FetchRequest(session_id=session, session_epoch=1, min_bytes=0), FETCH_VERSION)
    await disconnect_during_requests(node, name)
    await configure(node, 2, name, "max.message.bytes", str(5000 + number))
    await configure(node, 4, "", "log.cleaner.backoff.ms", str(15_000 + number % 2))
    await node.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]))
    await node.time.passes(DAY + HOUR, step=HOUR)


async def disconnect_during_requests(node: TimedNode, name: str) -> None:
    """Disconnect within a frame and during a waiting fetch."""
    waiting = fetch_request(name, 3, max_wait_ms=1_000_000)
    frame = request_frame(waiting, FETCH_VERSION)
    whole = len(frame).to_bytes(4, "big") + frame
    for data in (whole, whole[:3], whole[:20], b"\xff\xff\xff\xff" + whole):
        _, writer = await asyncio.open_connection("127.0.0.1", node.node.ports["PLAINTEXT"])
        writer.write(data)
        await writer.drain()
        await node.time.passes(SECOND)
        writer.transport.abort()
    async with asyncio.timeout(60):
        while node.node.limits.open:
            await asyncio.sleep(0.001)


def grown(before: Mapping[str, int], after: Mapping[str, int], spare: int) -> dict[str, tuple[int, int]]:
    return {
        name: (before.get(name, 0), count)
        for name, count in after.items()
        if count > before.get(name, 0) + spare
    }


def test_weeks_of_virtual_work_leak_no_task_timer_or_object(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rounds = 20
    # Captured log records keep their arguments alive.
    caplog.set_level(logging.CRITICAL, "moldau")

    async def scenario() -> None:
        config = {**PATIENT, "max.incremental.fetch.session.cache.slots": "4"}
        async with timed_node(tmp_path, config) as node:
            for number in range(6):
                await one_round(node, number)
            before, tasks, waiting = ours(), len(asyncio.all_tasks()), timers()
            for number in range(6, 6 + rounds):
                await one_round(node, number)
            assert len(asyncio.all_tasks()) == tasks
            assert timers() == waiting
            assert grown(before, ours(), rounds // 2) == {}
            assert sorted(each.name for each in node.logs.iterdir() if each.is_dir()) == [
                "__cluster_metadata-0"
            ]

    run(scenario)
