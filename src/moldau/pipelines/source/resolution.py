"""Resolve the positions in the user's options to offsets of the cluster."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.base.offsets import EARLIEST, LATEST
from moldau.client.admin.offsets import OffsetSpec
from moldau.pipelines.options import InvalidOption
from moldau.pipelines.source.cluster import TopicCluster, Topics
from moldau.pipelines.source.errors import SourceError
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.positions import Edge, Position, names

_SENTINELS = {"earliest": EARLIEST, "latest": LATEST}


def existing(cluster: TopicCluster, options: SourceOptions) -> Topics:
    """Return the subscribed topics; raise an error if a topic or partition named by the user does not
    exist."""
    topics = cluster.topics()
    if topics.missing:
        raise SourceError(_missing(topics))
    absent = options.subscription.assigned - topics.leaders.keys()
    if absent:
        raise SourceError(f"The option 'assign' names partitions that do not exist: {names(absent)}.")
    return topics


def resolve(
    cluster: TopicCluster, partitions: frozenset[TopicPartition], position: Position, edge: Edge
) -> Positions:
    """Return the offsets of a position for these partitions."""
    if position.kind in _SENTINELS:
        return cluster.offsets(dict.fromkeys(partitions, _SENTINELS[position.kind]))
    if position.kind == "timestamp":
        return _at(cluster, dict.fromkeys(partitions, position.timestamp), position, edge)
    _check_all_given(partitions, position, edge)
    if position.kind == "timestamps":
        return _at(cluster, dict(position.by_partition), position, edge)
    places = {partition: offset for partition, offset in position.by_partition.items() if offset < 0}
    return {**position.by_partition, **cluster.offsets(places)}


def _at(cluster: TopicCluster, times: dict[TopicPartition, int], position: Position, edge: Edge) -> Positions:
    found = cluster.offsets(times)
    later = sorted(partition for partition, offset in found.items() if offset < 0)
    if later and edge == "starting" and not position.latest_if_none:
        raise InvalidOption(
            f"No record at or after the starting timestamp in {names(frozenset(later))} "
            f"({', '.join(str(times[each]) for each in later)}). To start at the end of such partitions, set "
            "startingOffsetsByTimestampStrategy to latest."
        )
    return {**found, **cluster.offsets(dict.fromkeys(later, OffsetSpec.LATEST))}


def _check_all_given(partitions: frozenset[TopicPartition], position: Position, edge: Edge) -> None:
    given = frozenset(position.by_partition)
    if given == partitions:
        return
    option = f"{edge}Offsets" if position.kind == "offsets" else f"{edge}OffsetsByTimestamp"
    hint = "; use -1 for latest, -2 for earliest" if position.kind == "offsets" else ""
    raise InvalidOption(
        f"The option '{option}' must name exactly the subscribed partitions{hint}. It names "
        f"{names(given)}; subscribed are {names(partitions)}."
    )


def _missing(topics: Topics) -> str:
    absent = sorted(topics.missing)
    return (
        f"Unknown topic {', '.join(absent)}. Create it (kafka-topics --create --topic {absent[0]}) or list "
        "the existing topics (kafka-topics --list). Use subscribePattern for topics that are created later."
    )
