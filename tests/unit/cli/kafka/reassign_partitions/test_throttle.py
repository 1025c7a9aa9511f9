"""Throttled replicas of reassignments."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.reassign_partitions.plan import (
    Move,
)
from moldau.cli.kafka.reassign_partitions.throttle import throttled_replicas

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_throttled_replicas_are_sources_and_destinations() -> None:
    throttled = throttled_replicas({A0: Move({1, 2}, {3, 10}), A1: Move({1}, set()), B0: Move({2}, {1})})
    assert throttled == {"a": ("0:1,0:2,1:1", "0:10,0:3"), "b": ("0:2", "0:1")}
