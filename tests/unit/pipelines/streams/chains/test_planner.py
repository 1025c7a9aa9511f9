"""The serdes, partitions and topics of chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.client.partitioners import partition_for_key
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.chains.runner import Runner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Suppressed,
    TableJoined,
)
from moldau.pipelines.streams.dsl.serdes import Window, Windowed
from moldau.pipelines.streams.dsl.windows import TimeWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.operations import Operation
from moldau.pipelines.streams.topology.stages import Stage, stages
from moldau.pipelines.streams.topology.stateful import (
    ForeignKeyLookup,
    ForeignKeySubscribe,
    is_stateful,
)

TUMBLING = TimeWindows.of_size_and_grace(100, 50)


def test_each_stage_of_an_aggregate_has_its_own_topic_of_late_records() -> None:
    """An aggregate whose updates and final results are both used runs twice, and each run may drop other
    records."""

    def found(*, updates: bool) -> list[tuple[str, ...]]:
        builder = StreamsBuilder()
        groups = builder.stream("in", Consumed.with_("string", "string")).group_by_key(
            Grouped.with_("string", "string")
        )
        table = groups.windowed_by(TUMBLING).count(
            materialized=Materialized.as_("counts") if updates else None
        )
        last = table.suppress(Suppressed.until_window_closes(name="last"))
        last.to_stream(lambda key, value: key.key).to("out", Produced.with_("string", "long"))
        settings = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
        planner = Planner(settings, {})
        return [planner.late_topics(stage) for stage in stages(builder.build().nodes)]

    assert sorted(found(updates=True)) == [("app-counts-late",), ("app-last-late",)]
    assert found(updates=False) == [("app-KSTREAM-AGGREGATE-STATE-STORE-0000000001-late",)]


IN = Consumed.with_("string", "string")


GROUPED = Grouped.with_("string", "string")


SETTINGS = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})


def stages_of(write: Callable[[StreamsBuilder], Any]) -> tuple[Stage, ...]:
    builder = StreamsBuilder()
    write(builder)
    return stages(builder.build().nodes)


def test_missing_serde_is_named() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").map(lambda key, value: (key, value)).to("out")

    (stage,) = stages_of(write)
    planner = Planner(SETTINGS, {})
    with pytest.raises(
        TopologyException, match=r"No key serde for the sink out \(pass Produced\): .* default.key.serde"
    ):
        planner.leaf_exit(stage.leaves[0], 0)
    with pytest.raises(TopologyException, match="No key serde for the records of KSTREAM-SOURCE-0000000000"):
        planner.origin_serdes(stage.origins[0])


def runner_after(write: Callable[[StreamsBuilder], None], kind: type[Operation], partitions: int) -> Runner:
    """Return the runner of the chain after the operator of that kind."""
    (stage,) = (
        each for each in stages_of(write) if each.operator and isinstance(each.operator.operation, kind)
    )
    if stage.operator is None or stage.after is None:
        raise ValueError(f"{stage.name} has no chain after its operator")
    (leaf,) = stage.leaves
    topic = Planner(SETTINGS, {}).topic_of(leaf)
    planner = Planner(SETTINGS, {} if topic is None else {topic: partitions})
    exits = {leaf: planner.leaf_exit(leaf, 0)}
    known = {leaf: each for leaf, each in exits.items() if each is not None}
    return Runner(planner.program(stage.after, known, planner.result_serdes(stage.operator)))


def _length(_topic: str, key: str, value: None, partitions: int) -> int:
    return len(key) % partitions if value is None else -1


def test_partitioners_of_a_foreign_key_join_receive_no_value() -> None:
    def write(builder: StreamsBuilder) -> None:
        left = builder.table("left", Consumed.with_("string", "json"))
        right = builder.table("right", Consumed.with_("string", "json"))
        joined = TableJoined(_length, _length)
        left.join(right, max, foreign_key_extractor=str, table_joined=joined).to_stream().foreach(print)

    sent = ("three", "two")
    for kind, key in zip((ForeignKeySubscribe, ForeignKeyLookup), sent, strict=True):
        rows = runner_after(write, kind, 4).run([(key.encode(), b"\0{", 5, [], None, 1, None, None, None)])
        assert [(each.key, each.value, each.target_partition) for each in rows] == [
            (key.encode(), b"\0{", len(key) % 4)
        ]


def test_subscriptions_to_windowed_keys_are_partitioned_by_the_key() -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream("right", IN).group_by_key(GROUPED)
        windows = TimeWindows.of_size_with_no_grace(5)
        right = grouped.windowed_by(windows).count(materialized=Materialized.with_("string", "long"))
        left = builder.table("left", IN)
        left.join(right, max, foreign_key_extractor=lambda value: Windowed(value, Window(5, 10)))

    run = runner_after(write, ForeignKeySubscribe, 7)
    for key in (b"a", b"b", b"c"):
        (row,) = run.run([(key + (5).to_bytes(8), b"", 5, [], None, 0, None, None, None)])
        assert row.target_partition == partition_for_key(key, 7)


def test_windowed_keys_use_the_default_key_serde() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(5)
    builder.stream("a").group_by_key().windowed_by(windows).count().to_stream().foreach(print)
    (aggregate,) = (node for node in builder.build().nodes if is_stateful(node))
    config = {"application.id": "app", "bootstrap.servers": "a:1", "default.key.serde": "string"}
    planner = Planner(StreamsSettings.of({**config, "default.value.serde": "string"}), {})
    for serdes in (planner.origin_serdes(aggregate), planner.result_serdes(aggregate)):
        key = serdes.key.deserialize("", b"k" + (10).to_bytes(8))
        assert key == Windowed("k", Window(10, 15))
