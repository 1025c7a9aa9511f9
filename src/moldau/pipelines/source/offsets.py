"""The offset that Spark keeps in a checkpoint: up to where each partition was read.

It is the JSON of Spark's Kafka connector, `{"orders": {"0": 23, "1": 17}}`. Whatever else a batch must be
read in the same way again with, after a crash and maybe with other options, is kept beside it under a name
that no topic can have:

- `first`: where the first batch began. Spark keeps the ends of batches only, and asks for the beginning anew
  if the first one is repeated; by then "latest" is another offset.
- `splits`: the offsets at which partitions are cut into several tasks, where `minPartitions` or
  `maxRecordsPerPartition` ask for that.
- `recreated`: topics that were deleted and made anew, so the batch reads them from 0.
- `ids`: which topics these offsets are of. A topic that was deleted and made anew has the same name and
  another id, however far it has grown. Offsets of Spark's connector have none; the next batch adds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.base.ids import TopicPartition, Uuid, format_uuid, parse_uuid
from moldau.pipelines.source.errors import ForeignCheckpoint

#: Topic names have no dollar sign.
EXTRA = "$moldau"

Positions = dict[TopicPartition, int]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SourceOffset:
    positions: Positions
    first: Positions | None = None
    splits: dict[TopicPartition, list[int]] = field(default_factory=dict)
    recreated: frozenset[str] = frozenset()
    ids: dict[str, Uuid] = field(default_factory=dict)

    def to_json(self) -> Json:
        written = nested(self.positions)
        extra: Json = {}
        if self.first is not None:
            extra["first"] = nested(self.first)
        if self.splits:
            extra["splits"] = nested(self.splits)
        if self.recreated:
            extra["recreated"] = sorted(self.recreated)
        if self.ids:
            extra["ids"] = {topic: format_uuid(self.ids[topic]) for topic in sorted(self.ids)}
        if extra:
            written[EXTRA] = extra
        return written


def from_json(written: Mapping[str, Any]) -> SourceOffset:
    try:
        extra = written.get(EXTRA, {})
        return SourceOffset(
            positions=_numbers({name: value for name, value in written.items() if name != EXTRA}),
            first=_numbers(extra["first"]) if "first" in extra else None,
            splits={partition: list(map(int, cuts)) for partition, cuts in _flat(extra.get("splits", {}))},
            recreated=frozenset(extra.get("recreated", ())),
            ids={topic: parse_uuid(text) for topic, text in extra.get("ids", {}).items()},
        )
    except (AttributeError, TypeError, ValueError):
        raise ForeignCheckpoint(
            f"The checkpoint is not one of this source: {written!r} is not offsets by partition. "
            "Give the query a checkpointLocation of its own."
        ) from None


def nested(by_partition: Mapping[TopicPartition, Any]) -> Json:
    """By topic, then by partition, sorted."""
    result: Json = {}
    for topic, partition in sorted(by_partition):
        result.setdefault(topic, {})[str(partition)] = by_partition[TopicPartition(topic, partition)]
    return result


def _flat(written: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[TopicPartition, Any]]:
    for topic, by_partition in written.items():
        for partition, value in by_partition.items():
            yield TopicPartition(topic, int(partition)), value


def _numbers(written: Mapping[str, Mapping[str, Any]]) -> Positions:
    return {partition: int(value) for partition, value in _flat(written)}
