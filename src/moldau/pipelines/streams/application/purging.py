"""Repartition topics are only a way between two stages: what their reader has done with is deleted, as
Kafka Streams does. Spark may run its last batch once more, so records are kept from the beginning of that
batch on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.offsets import EXTRA


def done_with(progress: Iterable[Mapping[str, Any]], readers: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Up to where the records of topics are of no use, by the last progress of every query; `readers` says
    how many queries read each topic. As long as one of them is at its first batch, all is needed."""
    found: dict[TopicPartition, int] = {}
    told: Counter[str] = Counter()
    for each in progress:
        starts = [_offsets(source.get("startOffset")) for source in each.get("sources", ())]
        if not all(starts):
            continue
        told.update({topic for start in starts for topic in start})
        for topic, partitions in (pair for start in starts for pair in start.items()):
            for partition, offset in partitions.items():
                place = TopicPartition(topic, int(partition))
                found[place] = min(int(offset), found.get(place, int(offset)))
    read = {topic for topic, number in readers.items() if told[topic] >= number}
    return {place: offset for place, offset in found.items() if place.topic in read and offset > 0}


def _offsets(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """A progress has offsets as text or as what the text says; before the first batch there are none."""
    offsets = json.loads(given) if isinstance(given, str) else given
    if not isinstance(offsets, Mapping):
        return {}
    return {topic: each for topic, each in offsets.items() if topic != EXTRA and isinstance(each, Mapping)}
