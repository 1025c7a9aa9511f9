"""The internal topics of an application: names, partitions, configs, and purging."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.pipelines.streams.application.internal_topics import (
    InternalTopic,
    Partitions,
    internal_topics,
    purgeable_offsets,
)
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Repartitioned,
    TableJoined,
)
from moldau.pipelines.streams.dsl.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.stages import Stage, levels, stages

IN = Consumed.with_("string", "string")


OUT = Produced.with_("string", "string")


GROUPED = Grouped.with_("string", "string")


SETTINGS = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})


MINUTE = 60_000


def stages_of(write: Callable[[StreamsBuilder], Any]) -> tuple[Stage, ...]:
    builder = StreamsBuilder()
    write(builder)
    return stages(builder.build().nodes)


def topics(write: Callable[[StreamsBuilder], Any], **counts: int) -> dict[str, InternalTopic]:
    builder = StreamsBuilder()
    write(builder)
    topology = builder.build()
    partitions = Partitions(counts, SETTINGS)
    partitions.align(topology.nodes)
    found = internal_topics(stages(topology.nodes), Planner(SETTINGS, counts), partitions, {})
    return {topic.name: topic for topic in found}


def test_count_by_a_new_key_has_a_repartition_topic() -> None:
    def write(builder: StreamsBuilder) -> None:
        counts = builder.stream("in", IN).group_by(lambda key, value: value, GROUPED).count()
        counts.to_stream().to("out")

    first, second = stages_of(write)
    assert first.operator is None
    assert second.operator is not None
    assert levels([second, first]) == [[first], [second]]
    assert {name: topic.partitions for name, topic in topics(write, **{"in": 3}).items()} == {
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition": 3,
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog": 3,
    }


def test_internal_topics_have_the_configs_of_kafka_streams() -> None:
    def write(builder: StreamsBuilder) -> None:
        groups = builder.stream("in", IN).group_by(
            lambda key, value: value, Grouped("string", "string", "by")
        )
        groups.count(materialized=Materialized.as_("plain"))
        tumbling = TimeWindows.of_size_and_grace(MINUTE, 1000)
        groups.windowed_by(tumbling).count(materialized=Materialized.as_("tumbling"))
        sliding = SlidingWindows.of_time_difference_with_no_grace(MINUTE)
        groups.windowed_by(sliding).count(materialized=Materialized.as_("sliding"))
        kept = Materialized.with_(name="session", retention_ms=5, topic_config={"segment.bytes": "1000"})
        groups.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(MINUTE)).count(materialized=kept)

    found = topics(write, **{"in": 1})
    day = 86_400_000
    time = {"message.timestamp.type": "CreateTime"}
    assert {name: topic.config for name, topic in found.items()} == {
        "app-by-repartition": {
            **time,
            "cleanup.policy": "delete",
            "segment.bytes": "52428800",
            "retention.ms": "-1",
        },
        "app-plain-changelog": {**time, "cleanup.policy": "compact"},
        "app-tumbling-changelog": {
            **time,
            "cleanup.policy": "compact,delete",
            "retention.ms": str(MINUTE + 1000 + day),
        },
        **{
            f"app-{name}-late": {**time, "cleanup.policy": "delete", "retention.ms": "-1"}
            for name in ("tumbling", "sliding", "session")
        },
        "app-sliding-changelog": {
            **time,
            "cleanup.policy": "compact,delete",
            "retention.ms": str(2 * MINUTE + day),
        },
        "app-session-changelog": {
            **time,
            "cleanup.policy": "compact,delete",
            "retention.ms": str(5 + day),
            "segment.bytes": "1000",
        },
    }


def test_consecutive_stateful_operators_have_a_repartition_topic_between_them() -> None:
    """Kafka Streams needs no topic between a stream-stream join and a count by its key, Spark does."""

    def write(builder: StreamsBuilder) -> None:
        windows = JoinWindows.of_time_difference_with_no_grace(MINUTE)
        joined = builder.stream("left", IN).join(
            builder.stream("right", IN), lambda one, two: one + two, windows
        )
        joined.group_by_key(GROUPED).count(materialized=Materialized.as_("counts"))

    made = stages_of(write)
    assert [stage.name for stage in made] == ["KSTREAM-MERGE-0000000006", "KSTREAM-AGGREGATE-0000000007"]
    assert topics(write, left=2, right=2).keys() == {
        "app-KSTREAM-MERGE-0000000006-repartition",
        "app-KSTREAM-JOINTHIS-0000000004-store-late",
        "app-KSTREAM-JOINOTHER-0000000005-store-late",
        "app-counts-changelog",
    }


def test_repartition_topic_has_the_partitions_of_the_joined_table() -> None:
    def write(builder: StreamsBuilder) -> None:
        stream = builder.stream("stream", IN).select_key(lambda key, value: value)
        stream.join(builder.table("table", IN), lambda one, two: one).to("out", OUT)

    found = topics(write, stream=2, table=6)
    assert [topic.partitions for topic in found.values()] == [6]


def test_join_of_topics_with_different_partition_counts_is_rejected() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("stream", IN).join(builder.table("table", IN), lambda one, two: one).to("out", OUT)

    with pytest.raises(
        TopologyException,
        match=r"same number of partitions, but stream has 2, table has 6: repartition one side",
    ):
        topics(write, stream=2, table=6)


def test_cogroup_of_topics_with_different_partition_counts_is_rejected() -> None:
    def write(builder: StreamsBuilder) -> None:
        one, two = (builder.stream(name, IN).group_by_key(GROUPED) for name in ("one", "two"))
        one.cogroup(max).cogroup(two, max).aggregate(str, materialized=Materialized.with_("string", "string"))

    with pytest.raises(TopologyException, match="same number of partitions, but one has 2, two has 3"):
        topics(write, one=2, two=3)


def test_joins_that_share_an_input_have_the_same_number_of_partitions() -> None:
    def write(builder: StreamsBuilder) -> None:
        again = Repartitioned.with_("string", "string")
        one, two = (builder.stream(name, IN).repartition(again) for name in ("one", "two"))
        one.join(builder.table("table", IN), max).to("out", OUT)
        both = one.group_by_key(GROUPED).cogroup(max).cogroup(two.group_by_key(GROUPED), max)
        both.aggregate(str, materialized=Materialized.with_("string", "string", name="both"))

    found = topics(write, one=1, two=5, table=3, out=1)
    assert {topic.partitions for topic in found.values()} == {3}


def test_topics_of_a_foreign_key_join_have_the_partitions_of_their_target_table() -> None:
    def write(builder: StreamsBuilder) -> None:
        left, right = builder.table("left", IN), builder.table("right", IN)
        joined = left.join(right, max, foreign_key_extractor=str, table_joined=TableJoined(name="of"))
        joined.to_stream().to("out", OUT)

    found = topics(write, left=3, right=2, out=1)
    assert {name: (topic.partitions, topic.is_repartition) for name, topic in found.items()} == {
        "app-of-subscription-registration-topic": (2, True),
        "app-of-subscription-response-topic": (3, True),
    }


REPARTITION = "app-x-repartition"


def test_records_that_all_readers_have_processed_are_purgeable() -> None:
    progress = [
        {"sources": [{"startOffset": json.dumps({REPARTITION: {"0": 7, "1": 0}, "user": {"0": 9}})}]},
        {
            "sources": [
                {"startOffset": {REPARTITION: {"0": 5}, "$moldau": {"ids": {REPARTITION: "x"}, "first": {}}}}
            ]
        },
        {},
    ]
    assert purgeable_offsets(progress, {REPARTITION: 2}) == {TopicPartition(REPARTITION, 0): 5}


def test_nothing_is_purgeable_before_every_reader_has_completed_a_batch() -> None:
    ahead = {"sources": [{"startOffset": {REPARTITION: {"0": 7}}}]}
    for behind in ({}, {"sources": [{"startOffset": None}]}, {"sources": [{"startOffset": "null"}]}):
        assert purgeable_offsets([ahead, behind], {REPARTITION: 2}) == {}
