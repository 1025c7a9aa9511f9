"""Coordinators on a node: timers, loading and resignation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC
from moldau.groups.context import Requester
from moldau.metrics.catalog.coordinators import GROUP_LOAD_TIMES
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import Scrape
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.server.coordinators import coordinator
from moldau.server.coordinators.timers import LoopTimers
from moldau.server.metrics.collectors.groups import collect_transactions
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.node import Node
from moldau.statemachine.decision import Decision
from moldau.storage.log.log import Log
from tests.harness.clients.classic import commit_request, fetched, subscription
from tests.harness.nodes.node import running_node

ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}
RAW = Requester(9, "raw", "/127.0.0.1")


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def test_timers_run_once_and_can_be_rescheduled_and_cancelled() -> None:
    async def main() -> None:
        ran: list[str] = []

        def decide(name: str) -> Callable[[], Decision[Any, None]]:
            def run() -> Decision[Any, None]:
                ran.append(name)
                return Decision([], None)

            return run

        timers = LoopTimers(lambda decision: decision())
        timers.schedule("later", 100, decide("too late"))
        timers.schedule("later", 20, decide("later"))
        timers.schedule("put off", 10, decide("too early"))
        timers.schedule("put off", 60, decide("put off"))
        timers.schedule("never", 10, decide("never"))
        timers.cancel("never")
        assert timers.is_scheduled("later") and not timers.is_scheduled("never")
        await until(lambda: len(ran) == 2)
        assert ran == ["later", "put off"]
        timers.schedule("closed", 1, decide("closed"))
        timers.close()
        await asyncio.sleep(0.05)
        assert ran == ["later", "put off"]

    asyncio.run(main())


def test_a_refused_timer_decision_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.server.coordinators.timers._RETRY_SECONDS", 0.01)
    tries: list[int] = []

    def take(_: object) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if len(tries) == 2:
            raise ZeroDivisionError

    async def main() -> None:
        timers = LoopTimers(take)
        timers.schedule("t", 0, lambda: Decision([], None))
        await until(lambda: len(tries) == 3)
        assert not timers.is_scheduled("t")

    asyncio.run(main())


async def make_topic(node: Node) -> None:
    await node.broker.coordinators.internal_topics.ensure(CONSUMER_OFFSETS_TOPIC)
    await until(lambda: CONSUMER_OFFSETS_TOPIC in node.image.topics.by_name)


async def commit(node: Node, group_id: str, offset: int) -> None:
    request = commit_request(group_id, "orders", 0, offset)
    await node.broker.coordinators.groups.write(group_id, lambda shard: shard.commit_offsets(RAW, request))


async def committed(node: Node, group_id: str) -> dict[tuple[str, int], int]:
    return await node.broker.coordinators.groups.read(group_id, lambda shard: fetched(shard, group_id))


def test_committed_offsets_are_loaded_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            with pytest.raises(KafkaError) as refused:
                await commit(node, "g0", 1)
            assert refused.value.code == ErrorCode.NOT_COORDINATOR
            await make_topic(node)
            for number in range(20):
                await commit(node, f"g{number}", number)
                await commit(node, f"g{number}", number + 100)
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await until(lambda: len(list(node.broker.coordinators.groups.active_shards())) == 4)
            for number in range(20):
                assert await committed(node, f"g{number}") == {("orders", 0): number + 100}
            listed = await node.broker.coordinators.groups.read_all(lambda shard: shard.list_groups([], []))
            loads = node.broker.coordinators.groups.recent_loads(60)
            assert len(loads) == 4 and min(loads) > 0
            assert node.broker.coordinators.groups.recent_loads(-1) == []
            scrape = Scrape(FAMILIES)
            await collect_transactions(scrape, ScrapeSlice(), node.broker.coordinators)
            mean, largest = (
                float(line.rpartition(" ")[2]) for each in GROUP_LOAD_TIMES for line in scrape.lines(each)
            )
            assert largest >= mean > 0
            names = {group.group_id for groups in listed for group in groups}
            assert names == {f"g{number}" for number in range(20)}

    asyncio.run(main())


def test_a_loading_shard_answers_coordinator_load_in_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await make_topic(node)
            await commit(node, "g", 5)
        held = asyncio.Event()
        replay = coordinator.replay_partition

        async def wait_first(*arguments: Any) -> None:
            await held.wait()
            await replay(*arguments)

        monkeypatch.setattr(coordinator, "replay_partition", wait_first)
        async with running_node(tmp_path, ONE_REPLICA) as node:
            with pytest.raises(KafkaError) as refused:
                await committed(node, "g")
            assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            with pytest.raises(KafkaError) as refused:
                await node.broker.coordinators.groups.read_all(lambda shard: shard.list_groups([], []))
            assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            held.set()
            await until(lambda: len(list(node.broker.coordinators.groups.active_shards())) == 4)
            assert await committed(node, "g") == {("orders", 0): 5}

    asyncio.run(main())


def test_a_partition_that_fails_to_load_affects_only_its_own_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await make_topic(node)
            for number in range(20):
                await commit(node, f"g{number}", number)
            lost = {f"g{number}" for number in range(20)}
            lost = {name for name in lost if node.broker.coordinators.groups.partition_of(name) == 1}
        replay = coordinator.replay_partition

        async def damaged(log: Log, *arguments: Any) -> None:
            if log.topic_partition.partition == 1:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "on purpose")
            await replay(log, *arguments)

        monkeypatch.setattr(coordinator, "replay_partition", damaged)
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await until(lambda: len(list(node.broker.coordinators.groups.active_shards())) == 3)
            listed = await node.broker.coordinators.groups.read_all(lambda shard: shard.list_groups([], []))
            names = {group.group_id for groups in listed for group in groups}
            assert names == {f"g{number}" for number in range(20)} - lost and lost
            with pytest.raises(KafkaError) as refused:
                await committed(node, min(lost))
            assert refused.value.code == ErrorCode.NOT_COORDINATOR

    asyncio.run(main())


def test_pending_requests_fail_when_a_partition_is_resigned(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await make_topic(node)
            groups = node.broker.coordinators.groups
            index = groups.partition_of("g")
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("orders"))],
            )
            old = RAW._replace(api_version=3)
            waiting = asyncio.ensure_future(groups.write("g", lambda shard: shard.join_group(old, request)))
            await asyncio.sleep(0)
            groups._resign(index)
            with pytest.raises(KafkaError) as refused:
                await waiting
            assert refused.value.code == ErrorCode.NOT_COORDINATOR
            with pytest.raises(KafkaError):
                await commit(node, "g", 1)

    asyncio.run(main())


def test_listing_skips_a_partition_that_is_resigned_meanwhile(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await make_topic(node)
            groups = node.broker.coordinators.groups
            for number in range(20):
                await commit(node, f"g{number}", number)
            runtime = groups._lead_partitions[0].runtime
            assert runtime is not None
            runtime.committed(-1)
            listing = asyncio.ensure_future(groups.read_all(lambda shard: shard.list_groups([], [])))
            await asyncio.sleep(0)
            groups._resign(0)
            names = {group.group_id for found in await listing for group in found}
            assert names == {f"g{number}" for number in range(20) if groups.partition_of(f"g{number}") != 0}

    asyncio.run(main())


def test_too_few_brokers_for_the_offsets_topic_leave_the_coordinator_unavailable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with running_node(tmp_path, {"offsets.topic.replication.factor": "3"}) as node:
            await node.broker.coordinators.internal_topics.ensure(CONSUMER_OFFSETS_TOPIC)
            assert CONSUMER_OFFSETS_TOPIC not in node.image.topics.by_name
            with pytest.raises(KafkaError) as refused:
                node.broker.coordinators.groups.partition_of("g")
            assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    asyncio.run(main())
    assert "lower `offsets.topic.replication.factor`" in caplog.text
