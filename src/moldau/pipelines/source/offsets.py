"""The offset that Spark stores in a checkpoint: the next offset to read of each partition.

It is the JSON of Spark's Kafka connector, `{"orders": {"0": 23, "1": 17}}`. A batch must be replayed in the
same way after a failure, possibly with other options; what that needs is stored under a name that no topic
can have:

- `first`: the start of the first batch. Spark stores only the ends of batches and asks for the start again if
  the first batch is replayed; by then "latest" is another offset.
- `splits`: the offsets at which partitions are split into tasks for `minPartitions` or
  `maxRecordsPerPartition`.
- `recreated`: topics that were deleted and recreated, which the batch reads from 0.
- `ids`: the topic ids of these offsets. A recreated topic has the same name and another id. Offsets of
  Spark's Kafka connector have none; the next batch adds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.base.ids import TopicPartition, Uuid, format_uuid, parse_uuid
from moldau.pipelines.source.errors import ForeignCheckpoint

#: Topic names cannot contain a dollar sign.
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
            f"The checkpoint was not written by this source: {written!r} does not contain offsets by "
            "partition. Use another checkpointLocation."
        ) from None


def nested(by_partition: Mapping[TopicPartition, Any]) -> Json:
    """Return the values by topic and partition, sorted."""
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
