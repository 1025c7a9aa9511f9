"""Resolved regular expressions that could not be stored are resolved again."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.context import Requester
from moldau.groups.modern.regex import resolve_regexes
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.statemachine.effects import ResolveRegexes
from tests.harness.worlds.coordination import Coordination

RAW = Requester(1, "raw", "/127.0.0.1")


def heartbeat(coordination: Coordination, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="A",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="orders.*",
        topic_partitions=[],
    )
    answer: ConsumerGroupHeartbeatResponse = coordination.answer(
        lambda shard: shard.consumer_group_heartbeat(RAW, request)
    )
    return answer


def test_a_refused_resolution_is_requested_again() -> None:
    coordination = Coordination()
    coordination.create_topic("orders")
    joined = heartbeat(coordination, 0)
    (effect,) = coordination.effects
    assert isinstance(effect, ResolveRegexes)
    coordination.effects.clear()
    coordination.answer(lambda shard: shard.regexes_resolved("g", resolve_regexes(effect)))
    coordination.pass_ms(11_000)
    coordination.create_topic("orders-too")
    coordination.create_topic("orders", 3)
    joined = heartbeat(coordination, joined.member_epoch)
    (effect,) = coordination.effects
    coordination.effects.clear()
    coordination.create_topic("orders", 4)

    coordination.log.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    refused = coordination.ask(lambda shard: shard.regexes_resolved("g", resolve_regexes(effect)))
    assert refused.error is not None
    given_up = coordination.ask(lambda shard: shard.regexes_resolved("g", {}))
    assert given_up.error is None
    coordination.log.refusal = None
    heartbeat(coordination, joined.member_epoch)
    assert [each.regexes for each in coordination.effects] == [("orders.*",)]
