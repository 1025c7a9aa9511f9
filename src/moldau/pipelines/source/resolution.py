"""From what the user said to offsets: where partitions begin and end, and where they were at a time."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.base.offsets import EARLIEST, LATEST
from moldau.client.admin.offsets import OffsetSpec
from moldau.pipelines.source.errors import InvalidOption, SourceError
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.positions import Edge, Position, names
from moldau.pipelines.source.watch import Topics, Watch

_PLACES = {"earliest": EARLIEST, "latest": LATEST}


def existing(watch: Watch, options: SourceOptions) -> Topics:
    """The topics that are read; it is an error if something named by the user is not there."""
    topics = watch.topics()
    if topics.missing:
        raise SourceError(_missing(topics))
    absent = options.subscription.assigned - topics.leaders.keys()
    if absent:
        raise SourceError(
            f"There is no partition {names(absent)}: 'assign' names partitions that the topics do not have."
        )
    return topics


def resolve(watch: Watch, partitions: frozenset[TopicPartition], position: Position, edge: Edge) -> Positions:
    """The offsets that a position means for these partitions."""
    if position.kind in _PLACES:
        return watch.offsets(dict.fromkeys(partitions, _PLACES[position.kind]))
    if position.kind == "timestamp":
        return _at(watch, dict.fromkeys(partitions, position.timestamp), position, edge)
    _check_all_given(partitions, position, edge)
    if position.kind == "timestamps":
        return _at(watch, dict(position.by_partition), position, edge)
    places = {partition: offset for partition, offset in position.by_partition.items() if offset < 0}
    return {**position.by_partition, **watch.offsets(places)}


def _at(watch: Watch, times: dict[TopicPartition, int], position: Position, edge: Edge) -> Positions:
    found = watch.offsets(times)
    later = sorted(partition for partition, offset in found.items() if offset < 0)
    if later and edge == "starting" and not position.latest_if_none:
        raise InvalidOption(
            f"{names(frozenset(later))} have no record at or after the timestamp to begin with "
            f"({', '.join(str(times[each]) for each in later)}). To begin at the end of such partitions set "
            "startingOffsetsByTimestampStrategy to latest."
        )
    return {**found, **watch.offsets(dict.fromkeys(later, OffsetSpec.LATEST))}


def _check_all_given(partitions: frozenset[TopicPartition], position: Position, edge: Edge) -> None:
    given = frozenset(position.by_partition)
    if given == partitions:
        return
    option = f"{edge}Offsets" if position.kind == "offsets" else f"{edge}OffsetsByTimestamp"
    hint = "; use -1 for latest, -2 for earliest" if position.kind == "offsets" else ""
    raise InvalidOption(
        f"The option '{option}' must name exactly the partitions that are read{hint}. It names "
        f"{names(given)}; those are {names(partitions)}."
    )


def _missing(topics: Topics) -> str:
    absent = sorted(topics.missing)
    return (
        f"No topic {', '.join(absent)} exists. Create it (kafka-topics --create --topic {absent[0]}) or look "
        "for the right name (kafka-topics --list). Topics that may come later are read with subscribePattern."
    )
