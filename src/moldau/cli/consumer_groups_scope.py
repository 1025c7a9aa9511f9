"""Which partitions a command about offsets means: `--topic topic` or `--topic topic:0,1,2`, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.arguments import UsageError
from moldau.cli.tool import ToolError

if TYPE_CHECKING:
    from moldau.client.admin import AdminClient


def parse_partitions(text: str) -> list[TopicPartition]:
    """Partitions of a topic, written `topic:0,1,2`."""
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
    """The partitions that `--topic` arguments name."""
    from moldau.client.admin import checked

    partitions = [partition for topic in topics if ":" in topic for partition in parse_partitions(topic)]
    whole = [topic for topic in topics if ":" not in topic]
    described = checked(admin.describe_topics(whole)) if whole else {}
    partitions += [
        TopicPartition(name, partition.partition)
        for name, topic in described.items()
        for partition in topic.partitions
    ]
    return list(dict.fromkeys(partitions))


def check_usable(admin: AdminClient, partitions: Sequence[TopicPartition]) -> None:
    """Raise unless all of them exist and have a leader."""
    from moldau.client.admin import checked

    topics = checked(admin.describe_topics({partition.topic for partition in partitions}))
    leaders = {
        TopicPartition(name, partition.partition): partition.leader
        for name, topic in topics.items()
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
