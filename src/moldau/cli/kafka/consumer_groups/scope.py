"""The partitions that `--topic topic` and `--topic topic:0,1,2` select."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.tool import ToolError

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.topic_types import TopicDescription


def parse_partitions(text: str) -> list[TopicPartition]:
    """Parse partitions of a topic, written as `topic:0,1,2`."""
    topic, *rest = text.rstrip(":").split(":")
    if len(rest) != 1:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    partitions = []
    for number in rest[0].rstrip(",").split(","):
        if not number.removeprefix("-").removeprefix("+").isdecimal():
            raise UsageError(f"Invalid partition '{number}' specified in topic arg '{text}''")
        partitions.append(TopicPartition(topic, int(number)))
    return partitions


def partitions_of(admin: AdminClient, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions that `--topic` arguments select."""
    partitions = [partition for topic in topics if ":" in topic for partition in parse_partitions(topic)]
    described = _described(admin, [topic for topic in topics if ":" not in topic])
    partitions += [
        TopicPartition(topic.name, partition.partition)
        for topic in described
        for partition in topic.partitions
    ]
    return list(dict.fromkeys(partitions))


def check_usable(admin: AdminClient, partitions: Sequence[TopicPartition]) -> None:
    """Raise an error unless all partitions exist and have a leader."""
    leaders = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in _described(admin, dict.fromkeys(partition.topic for partition in partitions))
        for partition in topic.partitions
    }
    unknown = [partition for partition in partitions if partition not in leaders]
    if unknown:
        raise ToolError(f'The partitions "{",".join(map(str, unknown))}" do not exist')
    without = [partition for partition in partitions if leaders[partition] < 0]
    if without:
        raise KafkaError(
            ErrorCode.LEADER_NOT_AVAILABLE, f'The partitions "{",".join(map(str, without))}" have no leader'
        )


def _described(admin: AdminClient, names: Iterable[str]) -> list[TopicDescription]:
    """Describe topics; the error of one that does not exist names it."""
    found: list[TopicDescription] = []
    wanted = list(names)
    for name, result in (admin.describe_topics(wanted) if wanted else {}).items():
        if not isinstance(result, KafkaError):
            found.append(result)
        elif result.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(result.code, f"Topic {name} does not exist.")
        else:
            raise result
    return found
