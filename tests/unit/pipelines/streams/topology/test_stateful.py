"""The names by which a processor may forward to its children."""

from __future__ import annotations

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    StreamJoined,
)
from moldau.pipelines.streams.dsl.windows import JoinWindows
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import (
    forwarding_names,
)

IN = Consumed.with_("string", "string")


OUT = Produced.with_("string", "string")


GROUPED = Grouped.with_("string", "string")


MINUTE = 60_000


def test_processor_forwards_by_the_names_of_java() -> None:
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
