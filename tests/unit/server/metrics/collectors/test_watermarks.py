"""High watermarks of partitions with other leaders: all are asked for, and no leader delays the others."""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.server.metrics.collectors.watermarks import ask_leaders

MANY = 2500


def partitions(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in range(count)]


def test_all_partitions_are_asked_for() -> None:
    in_flight = most = 0

    async def ask(partition: TopicPartition) -> int:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1
        return partition.partition

    found = asyncio.run(ask_leaders({1: partitions("a", MANY), 2: partitions("b", MANY)}, ask, 30))
    assert found == {each: each.partition for each in partitions("a", MANY) + partitions("b", MANY)}
    assert most <= 400


def test_a_leader_that_does_not_answer_leaves_only_its_partitions_unknown() -> None:
    async def ask(partition: TopicPartition) -> int:
        if partition.topic == "hangs":
            await asyncio.Event().wait()
        if partition.topic == "fails":
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return 7

    by_leader = {1: partitions("hangs", 3), 2: partitions("fails", 3), 3: partitions("answers", 500)}
    assert asyncio.run(ask_leaders(by_leader, ask, 0.2)) == dict.fromkeys(partitions("answers", 500), 7)
