"""Reassignment plans: their JSON format, their validation, and the moves that they imply.

A plan names the replicas of partitions and, optionally, the log directory of each replica.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from moldau.base.ids import TopicPartition
from moldau.cli.shared.json_io import check_version, field, parse_object
from moldau.cli.shared.tool import ToolError
from moldau.client.admin.reassignments import Replica
from moldau.client.admin.topic_types import Reassignment

ANY_LOG_DIR = "any"


class Plan(NamedTuple):
    """The partitions in the order of the file, possibly with duplicates, and the log directories it names."""

    partitions: list[tuple[TopicPartition, list[int]]]
    log_dirs: dict[Replica, str]

    def checked(self) -> dict[TopicPartition, list[int]]:
        """Return the replicas by partition; raise `ToolError` if the plan is invalid."""
        if not self.partitions:
            raise ToolError("Error: Partition reassignment list cannot be empty")
        if any(not replicas for _, replicas in self.partitions):
            raise ToolError("Error: Partition replica list cannot be empty")
        twice = _twice(partition for partition, _ in self.partitions)
        if twice:
            raise ToolError(
                "Error: Partition reassignment contains duplicate topic partitions: "
                + ",".join(map(str, twice))
            )
        problems = [
            f"{partition} contains multiple entries for {','.join(map(str, _twice(replicas)))}"
            for partition, replicas in self.partitions
            if _twice(replicas)
        ]
        if problems:
            raise ToolError(
                f"Error: Partition replica lists may not contain duplicate entries: {'. '.join(problems)}"
            )
        return dict(self.partitions)


class Move(NamedTuple):
    sources: set[int]
    destinations: set[int]


def parse_plan(text: str) -> Plan:
    data = parse_object(text)
    check_version(data)
    plan = Plan([], {})
    for item in data.get("partitions", []):
        partition = TopicPartition(field(item, "topic", str), field(item, "partition", int))
        replicas = field(item, "replicas", list)
        dirs = item.get("log_dirs", [ANY_LOG_DIR] * len(replicas))
        if len(dirs) != len(replicas):
            raise ToolError(
                f"Error: Size of replicas list {_listed(replicas)} is different from size of log dirs list "
                f"{_listed(dirs)} for partition {partition}"
            )
        plan.partitions.append((partition, replicas))
        for broker, path in zip(replicas, dirs, strict=True):
            if path != ANY_LOG_DIR:
                plan.log_dirs[Replica(broker, *partition)] = path
    return plan


def parse_topics(text: str) -> list[str]:
    """Parse the topics of a file for --generate."""
    data = parse_object(text)
    check_version(data)
    topics = [field(item, "topic", str) for item in data.get("topics", [])]
    twice = _twice(topics)
    if twice:
        raise ToolError(f"Error: List of topics to reassign contains duplicate entries: {_listed(twice)}")
    return topics


def parse_brokers(text: str) -> list[int]:
    try:
        brokers = [int(item) for item in text.split(",")]
    except ValueError:
        raise ToolError(
            f"Error: --broker-list must be a list of broker ids such as 0,1,2, not {text!r}"
        ) from None
    twice = _twice(brokers)
    if twice:
        raise ToolError(f"Error: Broker list contains duplicate entries: {_listed(twice)}")
    return brokers


def format_plan(
    assignment: Mapping[TopicPartition, Sequence[int]], log_dirs: Mapping[Replica, str] | None = None
) -> str:
    """Return the JSON of a plan."""
    known = log_dirs or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(replicas),
            "log_dirs": [known.get(Replica(broker, *partition), ANY_LOG_DIR) for broker in replicas],
        }
        for partition, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def moves(
    ongoing: Mapping[TopicPartition, Reassignment],
    proposed: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """Return the brokers between which ongoing and proposed reassignments copy each partition."""
    found = {
        partition: Move(set(each.replicas) - set(each.adding), set(each.adding))
        for partition, each in ongoing.items()
    }
    for partition, replicas in proposed.items():
        known = found.get(partition)
        sources = known.sources if known is not None else set(current[partition])
        found[partition] = Move(sources, set(replicas) - sources)
    return found


def _twice(items: Iterable[Any]) -> list[Any]:
    return [item for item, count in Counter(items).items() if count > 1]


def _listed(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"
