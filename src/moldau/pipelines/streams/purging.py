"""Repartition topics are only a way between two stages: what their reader has done with is deleted, as
Kafka Streams does. Spark may run its last batch once more, so records are kept from the beginning of that
batch on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from moldau.base.ids import TopicPartition


def done_with(progress: Iterable[Mapping[str, Any]], topics: Collection[str]) -> dict[TopicPartition, int]:
    """Up to where the records of these topics are of no use, by the last progress of every query."""
    found: dict[TopicPartition, int] = {}
    for each in progress:
        for source in each.get("sources", ()):
            for topic, partitions in _offsets(source.get("startOffset")).items():
                if topic not in topics:
                    continue
                for partition, offset in partitions.items():
                    place = TopicPartition(topic, int(partition))
                    found[place] = min(int(offset), found.get(place, int(offset)))
    return {place: offset for place, offset in found.items() if offset > 0}


def _offsets(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """A progress has offsets as text or as what the text says; before the first batch there are none."""
    offsets = json.loads(given) if isinstance(given, str) else given
    if not isinstance(offsets, Mapping):
        return {}
    return {topic: each for topic, each in offsets.items() if isinstance(each, Mapping)}
