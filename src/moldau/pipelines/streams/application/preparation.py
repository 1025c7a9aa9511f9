"""Prepares the start of an application: checks the topics it reads and writes, and creates its internal
topics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.topic_types import NewTopic, TopicDescription
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.streams.application.internal_topics import InternalTopic, Partitions, internal_topics
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.operations import Sink, Source, TableSource
from moldau.pipelines.streams.topology.stages import Stage, stages
from moldau.pipelines.streams.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of the preparation: stages, their planner, internal topics and stores."""

    stages: tuple[Stage, ...]
    planner: Planner
    topics: tuple[InternalTopic, ...]
    stores: Mapping[str, StoreBuilder]


def prepare(topology: Topology, settings: StreamsSettings, *, create: bool) -> Prepared:
    """Check the topics of the cluster and, with `create`, create the internal topics that are missing."""
    found_stages = stages(topology.nodes)
    stores = {name: store for name, store in topology.state_stores.items() if isinstance(store, StoreBuilder)}
    with AdminClient(client_settings(settings)) as admin:
        counts = _partition_counts(admin, _source_topics(admin, topology), "reads")
        counts |= _partition_counts(admin, _sink_topics(admin, topology), "writes to")
        partitions = Partitions(counts, settings)
        partitions.align(topology.nodes)
        planner = Planner(settings, counts)
        topics = internal_topics(found_stages, planner, partitions, stores)
        planner = Planner(settings, counts | {each.name: each.partitions for each in topics})
        if create:
            _create(admin, topics, settings)
    return Prepared(found_stages, planner, tuple(topics), stores)


def repartition_readers(prepared: Prepared) -> dict[str, int]:
    """Return the number of queries that read each repartition topic."""
    names = {topic.name for topic in prepared.topics if topic.is_repartition}
    read = [prepared.planner.topic_of(origin) for stage in prepared.stages for origin in stage.origins]
    return {name: read.count(name) for name in names}


def client_settings(settings: StreamsSettings) -> ClientSettings:
    return ClientSettings.from_properties(
        {**settings.client, "bootstrap.servers": settings.bootstrap_servers}
    )


def _source_topics(admin: AdminClient, topology: Topology) -> list[str]:
    found: list[str] = []
    for node in topology.nodes:
        operation = node.operation
        if isinstance(operation, TableSource):
            found.append(operation.topic)
        elif isinstance(operation, Source) and operation.pattern is None:
            found += operation.topics
        elif isinstance(operation, Source):
            pattern = re.compile(operation.pattern or "")
            matching = [name for name in admin.list_topics() if pattern.fullmatch(name)]
            if not matching:
                raise StreamsException(f"No topic matches the pattern {operation.pattern} of {node.name}")
            found += matching
    return found


def _sink_topics(admin: AdminClient, topology: Topology) -> list[str]:
    """Return the topics of sinks; the broker creates missing ones if `auto.create.topics.enable` is set."""
    names = [node.operation.topic for node in topology.nodes if isinstance(node.operation, Sink)]
    topics = [name for name in dict.fromkeys(names) if name is not None]
    for topic, found in admin.describe_topics(topics).items() if topics else ():
        if _is_missing(found):
            admin.ensure_topic(topic)
    return topics


def _partition_counts(admin: AdminClient, topics: Sequence[str], does: str) -> dict[str, int]:
    if not topics:
        return {}
    described = admin.describe_topics(list(dict.fromkeys(topics)))
    missing = [name for name, found in described.items() if _is_missing(found)]
    if missing:
        raise StreamsException(
            f"The application {does} topics that do not exist: {', '.join(sorted(missing))}"
        )
    counts = {}
    for name, found in described.items():
        if isinstance(found, KafkaError):
            raise StreamsException(f"Topic {name}, which the application {does}: {found}") from found
        counts[name] = len(found.partitions)
    return counts


def _is_missing(found: TopicDescription | KafkaError) -> bool:
    return isinstance(found, KafkaError) and found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _create(admin: AdminClient, topics: Sequence[InternalTopic], settings: StreamsSettings) -> None:
    if not topics:
        return
    made = admin.create_topics(
        [
            NewTopic(each.name, each.partitions, settings.replication_factor, configs=each.config)
            for each in topics
        ]
    )
    exists = [name for name, error in made.items() if _is(error, ErrorCode.TOPIC_ALREADY_EXISTS)]
    for name, error in made.items():
        if isinstance(error, KafkaError) and name not in exists:
            raise StreamsException(f"Internal topic {name} could not be created: {error}") from error
    wanted = {each.name: each.partitions for each in topics}
    for name, count in _partition_counts(admin, list(wanted), "uses").items():
        if count != wanted[name]:
            raise StreamsException(
                f"Internal topic {name} has {count} partitions, but {wanted[name]} are required, because "
                "the topics it is derived from have changed. Delete it and the application's state, and "
                "start over"
            )


def _is(error: object, code: ErrorCode) -> bool:
    return isinstance(error, KafkaError) and error.code is code
