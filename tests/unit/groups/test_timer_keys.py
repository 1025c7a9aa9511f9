"""Members choose their ids; each has its own timers, whatever the id."""

from __future__ import annotations

from moldau.groups.context import Requester
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.harness.worlds.coordination import Coordination

RAW = Requester(1, "raw", "/127.0.0.1")


def heartbeat(coordination: Coordination, group_id: str, member_id: str, epoch: int) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    coordination.answer(lambda shard: shard.consumer_group_heartbeat(RAW, request))


def test_ids_that_look_alike_when_joined_have_separate_sessions() -> None:
    coordination = Coordination()
    coordination.create_topic("orders")
    heartbeat(coordination, "a-b", "c", 0)
    heartbeat(coordination, "a", "b-c", 0)
    heartbeat(coordination, "a", "b-c", -1)
    coordination.pass_ms(60_000)
    group = coordination.shard.registry.find("a-b")
    assert group is None or group.is_empty, "its member has not been heard from"
