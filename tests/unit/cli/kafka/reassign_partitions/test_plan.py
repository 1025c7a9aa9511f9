"""Reassignment plans: JSON format, validation, moves."""

from __future__ import annotations

import json

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.reassign_partitions.plan import (
    Move,
    format_plan,
    moves,
    parse_brokers,
    parse_plan,
    parse_topics,
)
from moldau.cli.shared.tool import ToolError
from moldau.client.admin.reassignments import Replica
from moldau.client.admin.topic_types import Reassignment

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def text(*partitions: dict[str, object], **more: object) -> str:
    return json.dumps({"version": 1, "partitions": partitions, **more})


def entry(replicas: list[int], **more: object) -> dict[str, object]:
    return {"topic": "a", "partition": 0, "replicas": replicas, **more}


def test_plan_is_parsed() -> None:
    plan = parse_plan(text(entry([1, 2], log_dirs=["any", "/data"]), {**entry([3]), "partition": 1}))
    assert plan.checked() == {A0: [1, 2], A1: [3]}
    assert plan.log_dirs == {Replica(2, "a", 0): "/data"}


def test_plan_round_trips_through_json() -> None:
    written = format_plan({B0: [3], A0: [1, 2]}, {Replica(2, "a", 0): "/data"})
    assert written == (
        '{"version":1,"partitions":['
        '{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","/data"]},'
        '{"topic":"b","partition":0,"replicas":[3],"log_dirs":["any"]}]}'
    )
    plan = parse_plan(written)
    assert format_plan(plan.checked(), plan.log_dirs) == written


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("{", "The input string is not a valid JSON"),
        (text(version=2), "Not supported version field value 2"),
        (text(), "Error: Partition reassignment list cannot be empty"),
        (text(entry([])), "Error: Partition replica list cannot be empty"),
        (
            text(entry([1]), entry([2])),
            "Error: Partition reassignment contains duplicate topic partitions: a-0",
        ),
        (
            text(entry([1, 2, 1])),
            "Error: Partition replica lists may not contain duplicate entries: a-0 contains multiple entries "
            "for 1",
        ),
        (
            text(entry([1, 2], log_dirs=["any"])),
            "Error: Size of replicas list [1, 2] is different from size of log dirs list [any] for "
            "partition a-0",
        ),
        (text({"topic": "a", "partition": 0}), "needs a field 'replicas' that is a list"),
        (text(entry("12")), "needs a field 'replicas' that is a list"),  # type: ignore[arg-type]
    ],
)
def test_invalid_plans_are_rejected(plan: str, message: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_plan(plan).checked()
    assert message in str(refused.value)


def test_topics_and_brokers_to_generate_from() -> None:
    assert parse_topics('{"topics": [{"topic": "b"}, {"topic": "a"}]}') == ["b", "a"]
    assert parse_brokers("1,2,3") == [1, 2, 3]
    for call, message in (
        (lambda: parse_topics('{"topics": [{"topic": "b"}, {"topic": "b"}]}'), "duplicate entries: [b]"),
        (lambda: parse_brokers("1,1"), "Error: Broker list contains duplicate entries: [1]"),
        (lambda: parse_brokers("1,x"), "must be a list of broker ids such as 0,1,2, not '1,x'"),
    ):
        with pytest.raises(ToolError) as refused:
            call()
        assert message in str(refused.value)


def test_sources_of_a_move_are_the_current_replicas() -> None:
    found = moves({}, {A0: [2, 3]}, {A0: [1, 2]})
    assert found == {A0: Move({1, 2}, {3})}


def test_ongoing_moves_keep_their_sources() -> None:
    under_way = {A0: Reassignment([1, 2, 3], [3], [1]), B0: Reassignment([1, 2], [2], [])}
    found = moves(under_way, {A0: [4, 2]}, {A0: [1, 2, 3]})
    assert found == {A0: Move({1, 2}, {4}), B0: Move({1}, {2})}


def test_replicas_sort_by_broker() -> None:
    replicas = [Replica(2, "a", 0), Replica(1, "b", 1), Replica(1, "a", 9)]
    assert [str(replica) for replica in sorted(replicas)] == ["a-9-1", "b-1-1", "a-0-2"]
