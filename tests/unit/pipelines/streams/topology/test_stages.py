"""Topologies cut into stages, the internal topics between them, and their partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.client.partitioners import partition_for_key
from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.chains.runner import Runner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Repartitioned,
    StreamJoined,
    Suppressed,
    TableJoined,
)
from moldau.pipelines.streams.dsl.serdes import Window, Windowed
from moldau.pipelines.streams.dsl.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.internal_topics import InternalTopic, Partitions, internal_topics
from moldau.pipelines.streams.topology.operations import Operation
from moldau.pipelines.streams.topology.stages import Stage, levels, stages
from moldau.pipelines.streams.topology.stateful import (
    ForeignKeyLookup,
    ForeignKeySubscribe,
    forwarding_names,
    is_stateful,
)

IN = Consumed.with_("string", "string")
OUT = Produced.with_("string", "string")
GROUPED = Grouped.with_("string", "string")
SETTINGS = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
MINUTE = 60_000


def cut(write: Callable[[StreamsBuilder], Any]) -> tuple[Stage, ...]:
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


def in_and_out(made: tuple[Stage, ...]) -> list[tuple[list[str], list[str]]]:
    return [([node.name for node in stage.origins], [leaf.name for leaf in stage.leaves]) for stage in made]


def test_branches_and_merges_without_state_are_one_stage() -> None:
    def write(builder: StreamsBuilder) -> None:
        one, two = builder.stream("one", IN), builder.stream("two", IN)
        one.merge(two).to("both", OUT)
        one.filter(lambda key, value: True).to("some", OUT)

    assert in_and_out(cut(write)) == [
        (
            ["KSTREAM-SOURCE-0000000000", "KSTREAM-SOURCE-0000000001"],
            ["KSTREAM-SINK-0000000003", "KSTREAM-SINK-0000000005"],
        )
    ]


def test_a_new_key_goes_through_a_topic_before_it_is_counted() -> None:
    def write(builder: StreamsBuilder) -> None:
        counts = builder.stream("in", IN).group_by(lambda key, value: value, GROUPED).count()
        counts.to_stream().to("out")

    first, second = cut(write)
    assert first.operator is None
    assert second.operator is not None
    assert levels([second, first]) == [[first], [second]]
    assert {name: topic.partitions for name, topic in topics(write, **{"in": 3}).items()} == {
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition": 3,
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog": 3,
    }


def test_internal_topics_have_kafka_streams_settings() -> None:
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


def test_operators_in_a_row_are_cut() -> None:
    """A join of streams, counted by its key: Kafka needs no topic between them, Spark does."""

    def write(builder: StreamsBuilder) -> None:
        windows = JoinWindows.of_time_difference_with_no_grace(MINUTE)
        joined = builder.stream("left", IN).join(
            builder.stream("right", IN), lambda one, two: one + two, windows
        )
        joined.group_by_key(GROUPED).count(materialized=Materialized.as_("counts"))

    made = cut(write)
    assert [stage.name for stage in made] == ["KSTREAM-MERGE-0000000006", "KSTREAM-AGGREGATE-0000000007"]
    assert topics(write, left=2, right=2).keys() == {
        "app-KSTREAM-MERGE-0000000006-repartition",
        "app-KSTREAM-JOINTHIS-0000000004-store-late",
        "app-KSTREAM-JOINOTHER-0000000005-store-late",
        "app-counts-changelog",
    }


def test_the_last_result_of_a_window_is_its_aggregates_own() -> None:
    def write(builder: StreamsBuilder, name: str | None = None) -> None:
        groups = builder.stream("in", IN).group_by_key(GROUPED)
        windowed = groups.windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
        counts = windowed.count(materialized=Materialized.as_(name) if name else None)
        counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")

    (alone,) = cut(write)
    assert alone.final
    updates, final = cut(lambda builder: write(builder, "queryable"))
    assert not updates.final
    assert final.final
    assert final.operator is updates.operator


def test_what_is_joined_has_equally_many_partitions() -> None:
    def write(builder: StreamsBuilder) -> None:
        stream = builder.stream("stream", IN).select_key(lambda key, value: value)
        stream.join(builder.table("table", IN), lambda one, two: one).to("out", OUT)

    found = topics(write, stream=2, table=6)
    assert [topic.partitions for topic in found.values()] == [6]


def test_topics_that_do_not_agree_cannot_be_joined() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("stream", IN).join(builder.table("table", IN), lambda one, two: one).to("out", OUT)

    with pytest.raises(
        TopologyException, match=r"stream has 2, table has 6: send one side through repartition"
    ):
        topics(write, stream=2, table=6)


def test_what_is_cogrouped_has_equally_many_partitions() -> None:
    def write(builder: StreamsBuilder) -> None:
        one, two = (builder.stream(name, IN).group_by_key(GROUPED) for name in ("one", "two"))
        one.cogroup(max).cogroup(two, max).aggregate(str, materialized=Materialized.with_("string", "string"))

    with pytest.raises(TopologyException, match="equally many partitions, but one has 2, two has 3"):
        topics(write, one=2, two=3)


def test_what_is_joined_twice_has_the_partitions_of_both_others() -> None:
    def write(builder: StreamsBuilder) -> None:
        again = Repartitioned.with_("string", "string")
        one, two = (builder.stream(name, IN).repartition(again) for name in ("one", "two"))
        one.join(builder.table("table", IN), max).to("out", OUT)
        both = one.group_by_key(GROUPED).cogroup(max).cogroup(two.group_by_key(GROUPED), max)
        both.aggregate(str, materialized=Materialized.with_("string", "string", name="both"))

    found = topics(write, one=1, two=5, table=3, out=1)
    assert {topic.partitions for topic in found.values()} == {3}


def test_a_processor_forwards_by_the_names_that_java_has() -> None:
    def write(builder: StreamsBuilder) -> Node:
        stream = builder.stream("in", IN).process_values(object, name="values")
        other = builder.stream("other", IN)
        windows = JoinWindows.of_time_difference_with_no_grace(MINUTE)
        other.join(stream, max, windows, StreamJoined.with_("string", "string", "string", name="pair"))
        grouped, others = stream.group_by_key(GROUPED), other.group_by_key(GROUPED)
        both = others.cogroup(max).cogroup(grouped, max)
        both.aggregate(str, "both", Materialized.with_("string", "string"))
        grouped.count("counted", Materialized.with_("string", "long"))
        stream.map(lambda key, value: (value, key), name="turned").to("out", OUT)
        return stream.node

    assert set(forwarding_names(write(StreamsBuilder()))) == {
        "pair-other-windowed",
        "both-cogroup-agg-1",
        "counted",
        "turned",
    }


def test_serdes_that_are_missing_are_named() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").map(lambda key, value: (key, value)).to("out")

    (stage,) = cut(write)
    planner = Planner(SETTINGS, {})
    with pytest.raises(
        TopologyException, match=r"No key serde for out \(give Produced to to\): .* default.key.serde"
    ):
        planner.leaf_exit(stage.leaves[0], 0)
    with pytest.raises(TopologyException, match="No key serde for what KSTREAM-SOURCE-0000000000 reads"):
        planner.origin_serdes(stage.origins[0])


def test_topics_of_a_foreign_key_join_have_the_partitions_of_the_table_they_lead_to() -> None:
    def write(builder: StreamsBuilder) -> None:
        left, right = builder.table("left", IN), builder.table("right", IN)
        joined = left.join(right, max, foreign_key_extractor=str, table_joined=TableJoined(name="of"))
        joined.to_stream().to("out", OUT)

    found = topics(write, left=3, right=2, out=1)
    assert {name: (topic.partitions, topic.is_repartition) for name, topic in found.items()} == {
        "app-of-subscription-registration-topic": (2, True),
        "app-of-subscription-response-topic": (3, True),
    }


def test_a_join_by_keys_has_no_settings_of_foreign_keys() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left", IN), builder.table("right", IN)
    with pytest.raises(TopologyException, match="give a foreign_key_extractor"):
        left.join(right, max, table_joined=TableJoined(name="of"))


def leaving(write: Callable[[StreamsBuilder], None], kind: type[Operation], partitions: int) -> Runner:
    """What runs behind the operator of that kind."""
    (stage,) = (each for each in cut(write) if each.operator and isinstance(each.operator.operation, kind))
    if stage.operator is None or stage.after is None:
        raise ValueError(f"nothing is behind {stage.name}")
    (leaf,) = stage.leaves
    topic = Planner(SETTINGS, {}).topic_of(leaf)
    planner = Planner(SETTINGS, {} if topic is None else {topic: partitions})
    exits = {leaf: planner.leaf_exit(leaf, 0)}
    known = {leaf: each for leaf, each in exits.items() if each is not None}
    return Runner(planner.program(stage.after, known, planner.result_serdes(stage.operator)))


def _length(_topic: str, key: str, value: None, partitions: int) -> int:
    return len(key) % partitions if value is None else -1


def test_partitioners_of_a_foreign_key_join_see_keys_alone() -> None:
    def write(builder: StreamsBuilder) -> None:
        left = builder.table("left", Consumed.with_("string", "json"))
        right = builder.table("right", Consumed.with_("string", "json"))
        joined = TableJoined(_length, _length)
        left.join(right, max, foreign_key_extractor=str, table_joined=joined).to_stream().foreach(print)

    sent = ("three", "two")
    for kind, key in zip((ForeignKeySubscribe, ForeignKeyLookup), sent, strict=True):
        rows = leaving(write, kind, 4).run([(key.encode(), b"\0{", 5, [], None, 1, None, None, None)])
        assert [(each.key, each.value, each.target_partition) for each in rows] == [
            (key.encode(), b"\0{", len(key) % 4)
        ]


def test_subscriptions_at_windows_go_to_the_partitions_of_their_keys() -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream("right", IN).group_by_key(GROUPED)
        windows = TimeWindows.of_size_with_no_grace(5)
        right = grouped.windowed_by(windows).count(materialized=Materialized.with_("string", "long"))
        left = builder.table("left", IN)
        left.join(right, max, foreign_key_extractor=lambda value: Windowed(value, Window(5, 10)))

    run = leaving(write, ForeignKeySubscribe, 7)
    for key in (b"a", b"b", b"c"):
        (row,) = run.run([(key + (5).to_bytes(8), b"", 5, [], None, 0, None, None, None)])
        assert row.target_partition == partition_for_key(key, 7)


def test_windows_are_read_by_the_default_serde_of_their_keys() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(5)
    builder.stream("a").group_by_key().windowed_by(windows).count().to_stream().foreach(print)
    (aggregate,) = (node for node in builder.build().nodes if is_stateful(node))
    config = {"application.id": "app", "bootstrap.servers": "a:1", "default.key.serde": "string"}
    planner = Planner(StreamsSettings.of({**config, "default.value.serde": "string"}), {})
    for serdes in (planner.origin_serdes(aggregate), planner.result_serdes(aggregate)):
        key = serdes.key.deserialize("", b"k" + (10).to_bytes(8))
        assert key == Windowed("k", Window(10, 15))
