"""Records of the topic `mm2-offset-syncs.<cluster>.internal`: pairs of offsets of the same record.

Key and value are MirrorMaker 2's. A header of our own says how many records directly before the pair were
copied without a gap on either side, so that one record translates all their offsets exactly. MirrorMaker 2
ignores it, and writes records without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.fields import FieldReader, int32, int64, string

RUN_HEADER = "moldau.run"


class OffsetSync(NamedTuple):
    """`before`: the number of records before the pair that keep the distance of its offsets."""

    partition: TopicPartition
    upstream: int
    downstream: int
    before: int = 0

    def key(self) -> bytes:
        return string(self.partition.topic) + int32(self.partition.partition)

    def value(self) -> bytes:
        return int64(self.upstream) + int64(self.downstream)

    def headers(self) -> list[tuple[str, bytes | None]]:
        return [(RUN_HEADER, int64(self.before))] if self.before else []


def read_offset_sync(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = ()
) -> OffsetSync:
    names, fields = FieldReader(key), FieldReader(value)
    partition = TopicPartition(names.string(), names.int32())
    upstream, downstream = fields.int64(), fields.int64()
    before = 0
    for name, content in headers:
        if name == RUN_HEADER:
            before = max(0, min(FieldReader(content).int64(), upstream, downstream))
    return OffsetSync(partition, upstream, downstream, before)
