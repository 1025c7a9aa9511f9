"""Records of the topic `mm2-offsets.<source>.internal`: how far each partition is copied.

Connect's format: JSON of the connector's name and the source partition, and JSON of the offset of the last
copied record. The id of the source topic is stored beside it, which MirrorMaker 2 ignores: offsets are
meaningless after the topic was deleted and created again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.fields import MalformedRecord

CONNECTOR = "MirrorSourceConnector"
_OFFSET, _TOPIC_ID = "offset", "topicId"


class SourceOffset(NamedTuple):
    """`offset` is that of the last copied record. `topic_id` is empty if MirrorMaker 2 wrote the record."""

    partition: TopicPartition
    offset: int
    topic_id: str = ""

    def key(self, cluster: str) -> bytes:
        return _json([CONNECTOR, source_partition(cluster, self.partition)])

    def value(self) -> bytes:
        return _json(self.content())

    def content(self) -> dict[str, Any]:
        return {_OFFSET: self.offset, **({_TOPIC_ID: self.topic_id} if self.topic_id else {})}


def source_partition(cluster: str, partition: TopicPartition) -> dict[str, Any]:
    """Return a partition as Connect's offsets name it."""
    return {"cluster": cluster, "partition": partition.partition, "topic": partition.topic}


def read_source_offset(cluster: str, key: bytes | None, value: bytes | None) -> SourceOffset | None:
    """Return the offset of a partition of the cluster; None for other records; offset -1 for a tombstone."""
    found = _decoded(key, list)
    if len(found) != 2:
        raise MalformedRecord(f"unexpected key: {found!r}")
    name, where = found
    if name != CONNECTOR or not isinstance(where, dict) or where.get("cluster") != cluster:
        return None
    topic, index = where.get("topic"), where.get("partition")
    if not isinstance(topic, str) or not isinstance(index, int):
        raise MalformedRecord(f"invalid source partition {where}")
    partition = TopicPartition(topic, index)
    if value is None:
        return SourceOffset(partition, -1)
    return source_offset(partition, _decoded(value, dict))


def source_offset(partition: TopicPartition, content: Mapping[str, Any]) -> SourceOffset:
    offset = content.get(_OFFSET)
    if not isinstance(offset, int):
        raise MalformedRecord(f"invalid source offset {content}")
    return SourceOffset(partition, offset, str(content.get(_TOPIC_ID) or ""))


def _decoded(data: bytes | None, kind: type) -> Any:
    try:
        found = json.loads(data or b"")
    except ValueError as error:
        raise MalformedRecord(f"invalid JSON: {error}") from error
    if not isinstance(found, kind):
        raise MalformedRecord(f"unexpected JSON: {found!r}")
    return found


def _json(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
