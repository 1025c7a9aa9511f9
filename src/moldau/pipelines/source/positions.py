"""The starting and ending positions in the user's options, before they are resolved to offsets.

A timestamp for all partitions overrides timestamps by partition, and these override offsets, as in Spark's
Kafka connector. In JSON -1 is the latest and -2 the earliest offset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from moldau.base.ids import TopicPartition
from moldau.base.offsets import EARLIEST, LATEST
from moldau.pipelines.options import InvalidOption

Kind = Literal["earliest", "latest", "offsets", "timestamps", "timestamp"]
Edge = Literal["starting", "ending"]


@dataclass(frozen=True, slots=True)
class Position:
    """`by_partition` contains offsets or timestamps; `timestamp` applies to every partition."""

    kind: Kind
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp: int = -1
    #: Whether a partition without a record at or after the timestamp starts at its end; otherwise an error.
    latest_if_none: bool = False


def read_position(options: Mapping[str, str], edge: Edge, default: Kind) -> Position:
    """Parse the options, whose names are in lower case."""
    latest_if_none = _strategy(options) == "latest"
    if (text := options.get(f"{edge}timestamp")) is not None:
        return Position("timestamp", timestamp=_long(text), latest_if_none=latest_if_none)
    if (text := options.get(f"{edge}offsetsbytimestamp")) is not None:
        return Position("timestamps", _by_partition(text, f"{edge}OffsetsByTimestamp"), -1, latest_if_none)
    text = options.get(f"{edge}offsets", default).strip()
    if text.lower() in ("earliest", "latest"):
        return Position("earliest" if text.lower() == "earliest" else "latest")
    return Position("offsets", _by_partition(text, f"{edge}Offsets"))


def check_batch(start: Position, end: Position) -> None:
    """Refuse positions that only a stream can have, and pairs that contradict each other."""
    if start.kind == "latest":
        raise InvalidOption("The option 'startingOffsets' cannot be latest for a batch.")
    if end.kind == "earliest":
        raise InvalidOption("The option 'endingOffsets' cannot be earliest for a batch.")
    for name, position, never in (("startingOffsets", start, LATEST), ("endingOffsets", end, EARLIEST)):
        for partition, offset in position.by_partition.items() if position.kind == "offsets" else ():
            if offset == never:
                word = "latest" if never == LATEST else "earliest"
                raise InvalidOption(f"The option '{name}' cannot be {word} for {partition} of a batch.")
    if start.kind == end.kind and start.kind in ("offsets", "timestamps"):
        _check_pair(start, end)


def _check_pair(start: Position, end: Position) -> None:
    if start.by_partition.keys() != end.by_partition.keys():
        raise InvalidOption(
            "Starting and ending positions must name the same partitions: starting "
            f"{names(start.by_partition)}, ending {names(end.by_partition)}."
        )
    what = "offset" if start.kind == "offsets" else "timestamp"
    for partition, begin in start.by_partition.items():
        if begin > end.by_partition[partition] >= 0:
            raise InvalidOption(
                f"The starting {what} {begin} of {partition} is greater than its ending {what} "
                f"{end.by_partition[partition]}."
            )


def names(partitions: Mapping[TopicPartition, object] | frozenset[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"


def _strategy(options: Mapping[str, str]) -> str:
    name = "startingOffsetsByTimestampStrategy"
    strategy = options.get(name.lower(), "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise InvalidOption(f"The option '{name}' must be error or latest, not {strategy!r}.")
    return strategy


def _long(text: str) -> int:
    try:
        return _whole(int(text.strip()))
    except (TypeError, ValueError):
        raise InvalidOption(
            f"Expected a timestamp in milliseconds since 1970 as a single number, got {text.strip()!r}."
        ) from None


def _by_partition(text: str, name: str) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(partition)): _whole(value)
            for topic, by_partition in json.loads(text).items()
            for partition, value in by_partition.items()
        }
    except (ValueError, AttributeError, TypeError):
        example = (
            '{"topicA":{"0":1700000000000}}'
            if name.endswith("Timestamp")
            else '"earliest", "latest" or {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
        )
        raise InvalidOption(f"The option '{name}' must be {example}, not {text!r}.") from None


def _whole(value: object) -> int:
    """Refuse other negative numbers, which ListOffsets would interpret."""
    if not isinstance(value, int) or isinstance(value, bool) or value < EARLIEST:
        raise TypeError(value)
    return value
