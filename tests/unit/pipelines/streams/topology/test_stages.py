"""Topologies are divided into stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Suppressed,
)
from moldau.pipelines.streams.dsl.windows import TimeWindows
from moldau.pipelines.streams.topology.stages import Stage, stages

IN = Consumed.with_("string", "string")


OUT = Produced.with_("string", "string")


GROUPED = Grouped.with_("string", "string")


MINUTE = 60_000


def stages_of(write: Callable[[StreamsBuilder], Any]) -> tuple[Stage, ...]:
    builder = StreamsBuilder()
    write(builder)
    return stages(builder.build().nodes)


def in_and_out(made: tuple[Stage, ...]) -> list[tuple[list[str], list[str]]]:
    return [([node.name for node in stage.origins], [leaf.name for leaf in stage.leaves]) for stage in made]


def test_branches_and_merges_without_state_are_one_stage() -> None:
    def write(builder: StreamsBuilder) -> None:
        one, two = builder.stream("one", IN), builder.stream("two", IN)
        one.merge(two).to("both", OUT)
        one.filter(lambda key, value: True).to("some", OUT)

    assert in_and_out(stages_of(write)) == [
        (
            ["KSTREAM-SOURCE-0000000000", "KSTREAM-SOURCE-0000000001"],
            ["KSTREAM-SINK-0000000003", "KSTREAM-SINK-0000000005"],
        )
    ]


def test_suppressed_results_are_computed_by_the_aggregate() -> None:
    def write(builder: StreamsBuilder, name: str | None = None) -> None:
        groups = builder.stream("in", IN).group_by_key(GROUPED)
        windowed = groups.windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
        counts = windowed.count(materialized=Materialized.as_(name) if name else None)
        counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")

    (alone,) = stages_of(write)
    assert alone.final
    updates, final = stages_of(lambda builder: write(builder, "queryable"))
    assert not updates.final
    assert final.final
    assert final.operator is updates.operator
