"""Where a source begins and ends, as the user says it: before it is known which offsets that means.

Timestamps for all partitions come before timestamps by partition, and these before offsets, as in Spark's
Kafka connector. In JSON -1 is the end of a partition and -2 its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from moldau.base.ids import TopicPartition
from moldau.base.offsets import EARLIEST, LATEST
from moldau.pipelines.source.errors import InvalidOption

Kind = Literal["earliest", "latest", "offsets", "timestamps", "timestamp"]
Edge = Literal["starting", "ending"]


@dataclass(frozen=True, slots=True)
class Position:
    """`by_partition` holds offsets or timestamps, `timestamp` one for every partition."""

    kind: Kind
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp: int = -1
    #: What becomes of a start by timestamp where no record is that late: an error, or the end.
    latest_if_none: bool = False


def read_position(options: Mapping[str, str], edge: Edge, default: Kind) -> Position:
    """From the options, whose names are in lower case."""
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
    """What only a stream can do, and what can never fit together."""
    if start.kind == "latest":
        raise InvalidOption("The option 'startingOffsets' cannot be latest when a topic is read once.")
    if end.kind == "earliest":
        raise InvalidOption("The option 'endingOffsets' cannot be earliest when a topic is read once.")
    for name, position, never in (("startingOffsets", start, LATEST), ("endingOffsets", end, EARLIEST)):
        for partition, offset in position.by_partition.items() if position.kind == "offsets" else ():
            if offset == never:
                word = "latest" if never == LATEST else "earliest"
                raise InvalidOption(
                    f"The option '{name}' cannot be {word} for {partition} when a topic is read once."
                )
    if start.kind == end.kind and start.kind in ("offsets", "timestamps"):
        _check_pair(start, end)


def _check_pair(start: Position, end: Position) -> None:
    if start.by_partition.keys() != end.by_partition.keys():
        raise InvalidOption(
            "Beginning and end must be given for the same partitions: "
            f"{names(start.by_partition)} begin, {names(end.by_partition)} end."
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
        raise InvalidOption(f"The option '{name}' is error or latest, not {strategy!r}.")
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
        raise InvalidOption(f"The option '{name}' wants {example}, and is {text!r}.") from None


def _whole(value: object) -> int:
    """Further negative numbers mean something to brokers, but not here."""
    if not isinstance(value, int) or isinstance(value, bool) or value < EARLIEST:
        raise TypeError(value)
    return value
