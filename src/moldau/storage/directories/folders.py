"""Names of the folders in a data directory.

A partition is stored in `<topic>-<partition>`. A suffix marks a folder that is not the current replica:
`.<hex id>-delete` is to be removed, `.<hex id>-future` is a replica being moved from another data directory,
`.<hex id>-stray` is a replica that is not in the cluster metadata, kept for an operator to look at. Deleted
and stray names shorten the topic so that the result is a valid file name.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid

_MAX_NAME_LENGTH = 255
_MARKED = re.compile(r"(?P<partition>\S+-\S+)\.\S+-(?P<kind>delete|future|stray)")


class FolderKind(Enum):
    CURRENT = ""
    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


class PartitionFolder(NamedTuple):
    """A parsed folder name. The topic of a deleted or stray folder may be shortened."""

    topic_partition: TopicPartition
    kind: FolderKind


def parse_folder(name: str, directory: str = "") -> PartitionFolder:
    """Parse a folder name; `KafkaError` if it is not that of a partition."""
    kind, base = FolderKind.CURRENT, name
    if name.endswith(("-delete", "-future", "-stray")):
        match = _MARKED.fullmatch(name)
        if match is None:
            raise _not_ours(name, directory)
        kind, base = FolderKind(match["kind"]), match["partition"]
    topic, dash, partition = base.rpartition("-")
    if not (topic and dash and partition.isascii() and partition.isdigit()):
        raise _not_ours(name, directory)
    return PartitionFolder(TopicPartition(topic, int(partition)), kind)


def _not_ours(name: str, directory: str) -> KafkaError:
    return KafkaError(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"Found directory {directory}/{name}, whose name is not of the form topic-partition (or "
        "topic-partition.id-delete, -future or -stray). Data directories must hold nothing but "
        "partitions: move it elsewhere and start again.",
    )


def delete_folder(topic_partition: TopicPartition, unique: Uuid) -> str:
    return _capped(topic_partition, unique, FolderKind.DELETE)


def stray_folder(topic_partition: TopicPartition, unique: Uuid) -> str:
    return _capped(topic_partition, unique, FolderKind.STRAY)


def future_folder(topic_partition: TopicPartition, unique: Uuid) -> str:
    return f"{topic_partition}.{unique.hex()}-{FolderKind.FUTURE.value}"


def _capped(topic_partition: TopicPartition, unique: Uuid, kind: FolderKind) -> str:
    topic, partition = topic_partition
    suffix = f"-{partition}.{unique.hex()}-{kind.value}"
    return topic[: _MAX_NAME_LENGTH - len(suffix)] + suffix
