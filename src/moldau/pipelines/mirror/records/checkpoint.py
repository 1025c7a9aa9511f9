"""Records of the topic `<source>.checkpoints.internal`: translated offsets of consumer groups."""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.fields import FieldReader, MalformedRecord, int16, int32, int64, string

_VERSION = 0


class Checkpoint(NamedTuple):
    """`partition` is the one on the target cluster."""

    group: str
    partition: TopicPartition
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    def key(self) -> bytes:
        return string(self.group) + string(self.partition.topic) + int32(self.partition.partition)

    def value(self) -> bytes:
        offsets = int64(self.upstream_offset) + int64(self.downstream_offset)
        return int16(_VERSION) + offsets + string(self.metadata)


def read_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    names, fields = FieldReader(key), FieldReader(value)
    if fields.int16() != _VERSION:
        raise MalformedRecord("unknown version of a checkpoint")
    group = names.string()
    partition = TopicPartition(names.string(), names.int32())
    return Checkpoint(group, partition, fields.int64(), fields.int64(), fields.string())
