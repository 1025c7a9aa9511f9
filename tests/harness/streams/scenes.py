"""Programs of the streams API, one for every operator: the counterparts of those in `StreamsOracle.java`.

A scene named `x` reads topics that begin with `x-` and writes topics that end in `-out`. Values are a
letter and a number ("v12").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.cogrouped_stream import CogroupedKStream
from moldau.pipelines.streams.dsl.parameters import (
    Branched,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    StreamJoined,
    Suppressed,
    TableJoined,
)
from moldau.pipelines.streams.dsl.processors import (
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    ValueTransformerWithKey,
)
from moldau.pipelines.streams.dsl.serdes import Serde, Serdes
from moldau.pipelines.streams.dsl.stores import Stores
from moldau.pipelines.streams.dsl.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows

TEXT = Serdes.string()
LONG = Serdes.long()
IN = Consumed.with_(TEXT, TEXT)
OUT = Produced.with_(TEXT, TEXT)
COUNTS = Produced.with_(TEXT, LONG)
GROUPED = Grouped.with_(TEXT, TEXT)
SECOND = 1000
WINDOWS = JoinWindows.of_time_difference_and_grace(SECOND, SECOND)
JOINED = Joined.with_(TEXT, TEXT, TEXT)

Scene = Callable[[StreamsBuilder], None]


#: The records of scenes are years old; retention would delete them.
FOR_EVER = {"retention.ms": "-1"}


def kept(name: str) -> Materialized:
    return Materialized.with_(TEXT, TEXT, name=name, topic_config=FOR_EVER)


def counted(name: str) -> Materialized:
    return Materialized.with_(TEXT, LONG, name=name, topic_config=FOR_EVER)


def windowed(values: Serde, size_ms: int) -> Produced:
    return Produced.with_(Serdes.time_windowed(TEXT, size_ms), values)


def sessions(values: Serde) -> Produced:
    return Produced.with_(Serdes.session_windowed(TEXT), values)


def number(value: str) -> int:
    return int(value[1:])


def together(one: str | None, two: str | None) -> str:
    """Concatenate two strings as Java does, where null is "null"."""
    return f"{one if one is not None else 'null'}+{two if two is not None else 'null'}"


def listed(one: str, two: str) -> str:
    return f"{one},{two}"


def appended(_key: str, value: str, so_far: str) -> str:
    return so_far + value


def branch(builder: StreamsBuilder) -> None:
    branches = (
        builder.stream("branch-in", IN)
        .split(Named("split-"))
        .branch(lambda key, value: key == "a", Branched.as_("first"))
        .branch(lambda key, value: number(value) % 2 == 0, Branched.as_("second"))
        .default_branch(Branched.as_("rest"))
    )
    branches["split-first"].to("branch-first-out", OUT)
    branches["split-second"].to("branch-second-out", OUT)
    branches["split-rest"].map_values(lambda value: value + "r").to("branch-rest-out", OUT)


STATELESS: dict[str, Scene] = {
    "map": lambda b: (
        b.stream("map-in", IN).map(lambda key, value: (key.upper(), value + "!")).to("map-out", OUT)
    ),
    "map-values": lambda b: (
        b.stream("map-values-in", IN)
        .map_values(lambda value: value + "!")
        .map_values(lambda key, value: key + value)
        .to("map-values-out", OUT)
    ),
    "filter": lambda b: (
        b.stream("filter-in", IN)
        .filter(lambda key, value: number(value) % 2 == 0)
        .filter_not(lambda key, value: key == "a")
        .to("filter-out", OUT)
    ),
    "flat-map": lambda b: (
        b.stream("flat-map-in", IN)
        .flat_map(lambda key, value: [(key, value), (key + key, value)])
        .flat_map_values(lambda value: [] if number(value) % 3 == 0 else [value + "x", value + "y"])
        .to("flat-map-out", OUT)
    ),
    "branch": branch,
    "merge": lambda b: b.stream("merge-left", IN).merge(b.stream("merge-right", IN)).to("merge-out", OUT),
    "select-key": lambda b: (
        b.stream("select-key-in", IN)
        .select_key(lambda key, value: value[0] + key)
        .peek(lambda key, value: None)
        .to("select-key-out", OUT)
    ),
    "repartition": lambda b: (
        b.stream("repartition-in", IN)
        .select_key(lambda key, value: value)
        .repartition(Repartitioned.with_(TEXT, TEXT))
        .to("repartition-out", OUT)
    ),
}


def grouped(builder: StreamsBuilder, scene: str) -> Any:
    return builder.stream(f"{scene}-in", IN).group_by_key(GROUPED)


AGGREGATIONS: dict[str, Scene] = {
    "count": lambda b: (
        grouped(b, "count").count(materialized=counted("count-store")).to_stream().to("count-out", COUNTS)
    ),
    "count-unnamed": lambda b: (
        grouped(b, "count-unnamed").count().to_stream().to("count-unnamed-out", COUNTS)
    ),
    "group-by": lambda b: (
        b.stream("group-by-in", IN)
        .group_by(lambda key, value: f"n{number(value) % 3}", GROUPED)
        .count(materialized=counted("group-by-store"))
        .to_stream()
        .to("group-by-out", COUNTS)
    ),
    "select-key-count": lambda b: (
        b.stream("select-key-count-in", IN)
        .select_key(lambda key, value: value[0] + key)
        .group_by_key(Grouped.with_(TEXT, TEXT, name="chosen"))
        .count()
        .to_stream()
        .to("select-key-count-out", COUNTS)
    ),
    "reduce": lambda b: (
        grouped(b, "reduce")
        .reduce(listed, materialized=kept("reduce-store"))
        .to_stream()
        .to("reduce-out", OUT)
    ),
    "aggregate": lambda b: (
        grouped(b, "aggregate")
        .aggregate(str, appended, materialized=kept("aggregate-store"))
        .to_stream()
        .to("aggregate-out", OUT)
    ),
    "tumbling": lambda b: (
        grouped(b, "tumbling")
        .windowed_by(TimeWindows.of_size_and_grace(SECOND, SECOND))
        .count(materialized=counted("tumbling-store"))
        .to_stream()
        .to("tumbling-out", windowed(LONG, 1000))
    ),
    "hopping": lambda b: (
        grouped(b, "hopping")
        .windowed_by(TimeWindows.of_size_and_grace(SECOND, SECOND).advance_by(400))
        .reduce(listed, materialized=kept("hopping-store"))
        .to_stream()
        .to("hopping-out", windowed(TEXT, 1000))
    ),
    "sliding": lambda b: (
        grouped(b, "sliding")
        .windowed_by(SlidingWindows.of_time_difference_and_grace(SECOND, 30_000))
        .aggregate(str, appended, materialized=kept("sliding-store"))
        .to_stream()
        .to("sliding-out", windowed(TEXT, 1000))
    ),
    "session": lambda b: (
        grouped(b, "session")
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND))
        .count(materialized=counted("session-store"))
        .to_stream()
        .to("session-out", sessions(LONG))
    ),
    "session-aggregate": lambda b: (
        grouped(b, "session-aggregate")
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND))
        .aggregate(
            str, appended, lambda key, one, two: one + two, materialized=kept("session-aggregate-store")
        )
        .to_stream()
        .to("session-aggregate-out", sessions(TEXT))
    ),
    "suppress-window": lambda b: (
        grouped(b, "suppress-window")
        .windowed_by(TimeWindows.of_size_and_grace(SECOND, SECOND))
        .count(materialized=counted("suppress-window-store"))
        .suppress(Suppressed.until_window_closes())
        .to_stream()
        .to("suppress-window-out", windowed(LONG, 1000))
    ),
    "suppress-time": lambda b: (
        grouped(b, "suppress-time")
        .count(materialized=counted("suppress-time-store"))
        .suppress(Suppressed.until_time_limit(3000))
        .to_stream()
        .to("suppress-time-out", COUNTS)
    ),
}


def stream_joined(builder: StreamsBuilder, scene: str, join: str, windows: JoinWindows) -> None:
    left, right = builder.stream(f"{scene}-left", IN), builder.stream(f"{scene}-right", IN)
    getattr(left, join)(right, together, windows, StreamJoined.with_(TEXT, TEXT, TEXT)).to(
        f"{scene}-out", OUT
    )


STREAM_JOINS: dict[str, Scene] = {
    "stream-join": lambda b: stream_joined(b, "stream-join", "join", WINDOWS),
    "stream-join-uneven": lambda b: stream_joined(b, "stream-join-uneven", "join", WINDOWS.before(300)),
    "stream-left-join": lambda b: stream_joined(b, "stream-left-join", "left_join", WINDOWS),
    "stream-outer-join": lambda b: stream_joined(b, "stream-outer-join", "outer_join", WINDOWS),
    "stream-join-named": lambda b: (
        b.stream("stream-join-named-left", IN)
        .select_key(lambda key, value: key + key)
        .join(
            b.stream("stream-join-named-right", IN).map(lambda key, value: (key + key, value)),
            together,
            WINDOWS,
            StreamJoined.with_(TEXT, TEXT, TEXT, name="meeting", store_name="meeting-store"),
        )
        .to("stream-join-named-out", OUT)
    ),
}

TABLE_JOINS: dict[str, Scene] = {
    "table-lookup": lambda b: (
        b.stream("table-lookup-in", IN)
        .join(b.table("table-lookup-table", IN), together, joined=JOINED)
        .to("table-lookup-out", OUT)
    ),
    "table-lookup-left": lambda b: (
        b.stream("table-lookup-left-in", IN)
        .left_join(b.table("table-lookup-left-table", IN, kept("lookup-store")), together, joined=JOINED)
        .to("table-lookup-left-out", OUT)
    ),
    "table-lookup-rekeyed": lambda b: (
        b.stream("table-lookup-rekeyed-in", IN)
        .select_key(lambda key, value: key.upper())
        .join(b.table("table-lookup-rekeyed-table", IN), together, joined=JOINED)
        .to("table-lookup-rekeyed-out", OUT)
    ),
    "global-join": lambda b: global_joined(b, "global-join", "join", None),
    "global-left-join": lambda b: global_joined(b, "global-left-join", "left_join", kept("names")),
    "table-join": lambda b: table_joined(b, "table-join", "join", None),
    "table-left-join": lambda b: table_joined(b, "table-left-join", "left_join", None),
    "table-outer-join": lambda b: table_joined(
        b, "table-outer-join", "outer_join", kept("table-outer-join-store")
    ),
}


def global_joined(builder: StreamsBuilder, scene: str, join: str, kept_as: Materialized | None) -> None:
    names = builder.global_table(f"{scene}-table", IN, kept_as)
    stream = builder.stream(f"{scene}-in", IN)
    getattr(stream, join)(names, together, key_selector=lambda key, value: value).to(f"{scene}-out", OUT)


def table_joined(builder: StreamsBuilder, scene: str, join: str, kept_as: Materialized | None) -> None:
    left, right = builder.table(f"{scene}-left", IN), builder.table(f"{scene}-right", IN)
    getattr(left, join)(right, together, materialized=kept_as).to_stream().to(f"{scene}-out", OUT)


def by_rest(builder: StreamsBuilder, scene: str) -> Any:
    table = builder.table(f"{scene}-in", IN)
    return table.group_by(lambda key, value: (f"n{number(value) % 3}", value), GROUPED)


def plus(_key: str, value: str, so_far: str) -> str:
    return f"v{number(so_far) + number(value)}"


def minus(_key: str, value: str, so_far: str) -> str:
    return f"v{number(so_far) - number(value)}"


TABLES: dict[str, Scene] = {
    "table-map-values": lambda b: (
        b.table("table-map-values-in", IN)
        .map_values(lambda value: value + "!", materialized=kept("table-map-values-store"))
        .to_stream()
        .to("table-map-values-out", OUT)
    ),
    "table-filter": lambda b: (
        b.table("table-filter-in", IN)
        .filter(lambda key, value: number(value) % 2 == 0)
        .to_stream()
        .to("table-filter-out", OUT)
    ),
    "to-table": lambda b: (
        b.stream("to-table-in", IN)
        .map_values(lambda value: None if value == "v13" else value)
        .to_table(materialized=kept("to-table-store"))
        .to_stream()
        .to("to-table-out", OUT)
    ),
    "table-count": lambda b: (
        by_rest(b, "table-count")
        .count(materialized=counted("table-count-store"))
        .to_stream()
        .to("table-count-out", COUNTS)
    ),
    "table-reduce": lambda b: (
        by_rest(b, "table-reduce")
        .reduce(lambda so_far, value: plus("", value, so_far), lambda so_far, value: minus("", value, so_far))
        .to_stream()
        .to("table-reduce-out", OUT)
    ),
    "table-aggregate": lambda b: (
        by_rest(b, "table-aggregate")
        .aggregate(lambda: "v0", plus, minus, materialized=kept("table-aggregate-store"))
        .to_stream()
        .to("table-aggregate-out", OUT)
    ),
}


class Summing(Processor):
    """Sums the numbers of a key, forwards the sums every second of stream time, and forwards a farewell for
    "v0"."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.sums = context.get_state_store("sums")
        context.schedule(SECOND, PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record) -> None:
        before = self.sums.get(record.key)
        now = (0 if before is None else number(before)) + number(record.value)
        if number(record.value) == 0:
            self.sums.delete(record.key)
            self.context.forward(record.with_key(f"{record.key}-gone").with_value(f"v{now}"))
        else:
            self.sums.put(record.key, f"v{now}")

    def tell(self, time_ms: int) -> None:
        for key, value in self.sums.all():
            self.context.forward(Record(key, value, time_ms))


class Numbering(FixedKeyProcessor):
    """Numbers the values of each key."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen = context.get_state_store("seen")

    def process(self, record: Record) -> None:
        before = self.seen.get(record.key)
        now = 1 if before is None else number(before) + 1
        self.seen.put(record.key, f"v{now}")
        self.context.forward(record.with_value(f"{record.value}#{now}"))


def process(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.key_value_store("sums", TEXT, TEXT))
    builder.stream("process-in", IN).process(Summing, "sums").to("process-out", OUT)


def process_values(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.key_value_store("seen", TEXT, TEXT))
    stream = builder.stream("process-values-in", IN)
    stream.process_values(Numbering, "seen", name=Named("numbering")).to("process-values-out", OUT)


class Sorting(Processor):
    """Forwards even numbers to one child, multiples of three to another, and all others to all children."""

    def process(self, record: Record) -> None:
        if number(record.value) % 2 == 0:
            self.context.forward(record, "even")
        elif number(record.value) % 3 == 0:
            self.context.forward(record, "third")
        else:
            self.context.forward(record)


def forward(builder: StreamsBuilder) -> None:
    """The second child is stateful, the third is a topic."""
    sorted_ = builder.stream("forward-in", IN).process(Sorting, name="sorting")
    sorted_.map_values(lambda value: value + "e", name="even").to("forward-even-out", OUT)
    sorted_.process_values(Repeating, name="third").to("forward-third-out", OUT)
    sorted_.to("forward-all-out", Produced.with_(TEXT, TEXT, name="all"))


class Repeating(FixedKeyProcessor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(record.value + record.value))


class Versions(ValueTransformerWithKey):
    """Numbers the values of each key, and deletes every fifth."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.versions = context.get_state_store("versions")

    def transform(self, key: str, value: str | None) -> str | None:
        before = self.versions.get(key)
        now = 1 if before is None else number(before) + 1
        self.versions.put(key, f"v{now}")
        return None if now % 5 == 0 else f"{'null' if value is None else value}#{now}"


def transform_values(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.key_value_store("versions", TEXT, TEXT))
    table = builder.table("table-transform-in", IN)
    versions = table.transform_values(Versions, "versions", materialized=kept("table-transform-store"))
    versions.filter(lambda key, value: value != "v1#1").to_stream().to("table-transform-out", OUT)


PROCESSORS: dict[str, Scene] = {
    "process": process,
    "process-values": process_values,
    "forward": forward,
    "table-transform": transform_values,
}

COGROUPS: dict[str, Scene] = {
    "cogroup": lambda b: (
        cogrouped(b, "cogroup")
        .aggregate(str, materialized=kept("cogroup-store"))
        .to_stream()
        .to("cogroup-out", OUT)
    ),
    "cogroup-rekeyed": lambda b: (
        b.stream("cogroup-rekeyed-left", IN)
        .group_by(lambda key, value: f"n{number(value) % 3}", GROUPED)
        .cogroup(appended)
        .cogroup(b.stream("cogroup-rekeyed-right", IN).group_by_key(GROUPED), starred)
        .aggregate(str, name="both", materialized=Materialized.with_(TEXT, TEXT))
        .to_stream()
        .to("cogroup-rekeyed-out", OUT)
    ),
    "cogroup-tumbling": lambda b: (
        cogrouped(b, "cogroup-tumbling")
        .windowed_by(TimeWindows.of_size_and_grace(SECOND, SECOND))
        .aggregate(str, materialized=kept("cogroup-tumbling-store"))
        .to_stream()
        .to("cogroup-tumbling-out", windowed(TEXT, 1000))
    ),
    "cogroup-sliding": lambda b: (
        cogrouped(b, "cogroup-sliding")
        .windowed_by(SlidingWindows.of_time_difference_and_grace(SECOND, 30_000))
        .aggregate(str, materialized=kept("cogroup-sliding-store"))
        .to_stream()
        .to("cogroup-sliding-out", windowed(TEXT, 1000))
    ),
    "cogroup-session": lambda b: (
        cogrouped(b, "cogroup-session")
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND))
        .aggregate(str, lambda key, one, two: one + two, materialized=kept("cogroup-session-store"))
        .to_stream()
        .to("cogroup-session-out", sessions(TEXT))
    ),
}


def starred(_key: str, value: str, so_far: str) -> str:
    return f"{so_far}*{value}"


def cogrouped(builder: StreamsBuilder, scene: str) -> CogroupedKStream:
    left, right = (builder.stream(f"{scene}-{side}", IN).group_by_key(GROUPED) for side in ("left", "right"))
    return left.cogroup(appended).cogroup(right, starred)


def foreign_joined(builder: StreamsBuilder, scene: str, join: str, **more: Any) -> None:
    """Return the foreign key of a row, which depends on its number; some rows have none."""
    left, right = builder.table(f"{scene}-left", IN), builder.table(f"{scene}-right", IN)
    joined = getattr(left, join)(right, together, foreign_key_extractor=other_key, **more)
    joined.to_stream().to(f"{scene}-out", OUT)


def other_key(value: str) -> str | None:
    place = number(value) % 5
    return None if place == 4 else "abcd"[place]


FOREIGN_JOINS: dict[str, Scene] = {
    "foreign-join": lambda b: foreign_joined(
        b, "foreign-join", "join", materialized=kept("foreign-join-store")
    ),
    "foreign-left-join": lambda b: foreign_joined(
        b, "foreign-left-join", "left_join", table_joined=TableJoined(name="looked-up")
    ),
    "foreign-join-counted": lambda b: (
        b.table("foreign-join-counted-left", IN)
        .map_values(lambda value: value + "0", materialized=Materialized.with_(TEXT, TEXT))
        .join(
            b.table("foreign-join-counted-right", IN),
            together,
            foreign_key_extractor=lambda key, value: other_key(value),
            materialized=Materialized.with_(TEXT, TEXT),
        )
        .group_by(lambda key, value: (value[-1], value), GROUPED)
        .count(materialized=counted("foreign-join-counted-store"))
        .to_stream()
        .to("foreign-join-counted-out", COUNTS)
    ),
}


def self_joined(builder: StreamsBuilder) -> None:
    stream = builder.stream("self-join-in", IN)
    joined = StreamJoined.with_(TEXT, TEXT, TEXT)
    stream.join(stream, together, WINDOWS, joined).to("self-join-out", OUT)


MORE_JOINS: dict[str, Scene] = {"self-join": self_joined}


def nulls_table(builder: StreamsBuilder) -> None:
    table = builder.table("nulls-table-in", IN)
    table.to_stream().to("nulls-table-out", OUT)
    odd = table.filter_not(lambda key, value: number(value) % 2 == 0)
    odd.map_values(lambda value: None if number(value) % 3 == 0 else value + "!").to_stream().to(
        "nulls-table-odd-out", OUT
    )
    counts = table.group_by(lambda key, value: (other_key(value), value), GROUPED).count()
    counts.to_stream().to("nulls-table-count-out", COUNTS)


def nulls_count(builder: StreamsBuilder) -> None:
    groups = grouped(builder, "nulls-count")
    groups.count().to_stream().to("nulls-count-out", COUNTS)
    tumbling = groups.windowed_by(TimeWindows.of_size_and_grace(SECOND, SECOND))
    tumbling.reduce(together).to_stream().to("nulls-count-reduced-out", windowed(TEXT, 1000))
    sliding = groups.windowed_by(SlidingWindows.of_time_difference_and_grace(SECOND, SECOND))
    sliding.count().to_stream().to("nulls-count-sliding-out", windowed(LONG, 1000))
    session = groups.windowed_by(SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND))
    session.count().to_stream().to("nulls-count-session-out", sessions(LONG))


def nulls_lookup(builder: StreamsBuilder) -> None:
    stream, table = builder.stream("nulls-lookup-in", IN), builder.table("nulls-lookup-table", IN)
    stream.left_join(table, together, joined=JOINED).to("nulls-lookup-left-out", OUT)
    stream.join(table, together, joined=JOINED).to("nulls-lookup-out", OUT)


def nulls_global(builder: StreamsBuilder) -> None:
    def chosen(_key: str | None, value: str | None) -> str | None:
        return None if value is None or number(value) % 3 == 0 else value

    table = builder.global_table("nulls-global-table", IN)
    stream = builder.stream("nulls-global-in", IN)
    stream.left_join(table, together, key_selector=chosen).to("nulls-global-left-out", OUT)
    stream.join(table, together, key_selector=chosen).to("nulls-global-out", OUT)


def nulls_streams(builder: StreamsBuilder) -> None:
    left, right = builder.stream("nulls-streams-left", IN), builder.stream("nulls-streams-right", IN)
    joined = StreamJoined.with_(TEXT, TEXT, TEXT)
    left.join(right, together, WINDOWS, joined).to("nulls-streams-inner-out", OUT)
    left.left_join(right, together, WINDOWS, joined).to("nulls-streams-left-out", OUT)
    left.outer_join(right, together, WINDOWS, joined).to("nulls-streams-outer-out", OUT)


def nulls_rekeyed(builder: StreamsBuilder) -> None:
    stream = builder.stream("nulls-rekeyed-in", IN)
    chosen = stream.select_key(lambda key, value: key if value is None else other_key(value))
    chosen.repartition(Repartitioned.with_(TEXT, TEXT)).to("nulls-rekeyed-all-out", OUT)
    chosen.group_by_key(GROUPED).count().to_stream().to("nulls-rekeyed-out", COUNTS)
    table = chosen.to_table(materialized=kept("nulls-rekeyed-store"))
    table.to_stream().to("nulls-rekeyed-table-out", OUT)


def disordered_table(builder: StreamsBuilder) -> None:
    table = builder.table("disordered-table-in", IN)
    table.to_stream().to("disordered-table-out", OUT)
    groups = table.group_by(lambda key, value: (f"n{number(value) % 3}", value), GROUPED)
    sums = groups.aggregate(lambda: "v0", plus, minus, materialized=kept("disordered-table-store"))
    sums.to_stream().to("disordered-table-sum-out", OUT)


#: Scenes with missing keys and values, and with a table whose timestamps are out of order.
NULLS: dict[str, Scene] = {
    "nulls-table": nulls_table,
    "nulls-count": nulls_count,
    "nulls-lookup": nulls_lookup,
    "nulls-global": nulls_global,
    "nulls-streams": nulls_streams,
    "nulls-rekeyed": nulls_rekeyed,
    "disordered-table": disordered_table,
}


def kept_an_hour(name: str, values: Serde) -> Materialized:
    """Kafka Streams drops windows whose retention is not longer than they are open without emitting them."""
    return Materialized.with_(TEXT, values, name=name, retention_ms=3600 * SECOND, topic_config=FOR_EVER)


def emit_final(builder: StreamsBuilder) -> None:
    groups, close = grouped(builder, "emit-final"), EmitStrategy.on_window_close()
    hopping = groups.windowed_by(TimeWindows.of_size_and_grace(SECOND, SECOND).advance_by(400))
    reduced = hopping.emit_strategy(close).reduce(
        together, materialized=kept_an_hour("emit-final-store", TEXT)
    )
    reduced.to_stream().to("emit-final-out", windowed(TEXT, 1000))
    sliding = groups.windowed_by(SlidingWindows.of_time_difference_and_grace(SECOND, SECOND))
    counts = sliding.emit_strategy(close).count(materialized=kept_an_hour("emit-final-sliding-store", LONG))
    counts.to_stream().to("emit-final-sliding-out", windowed(LONG, 1000))
    session = groups.windowed_by(SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND))
    last = session.emit_strategy(close).reduce(
        together, materialized=kept_an_hour("emit-final-session-store", TEXT)
    )
    last.to_stream().to("emit-final-session-out", sessions(TEXT))


FINALS: dict[str, Scene] = {
    "suppress-session": lambda b: (
        grouped(b, "suppress-session")
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND))
        .count(materialized=counted("suppress-session-store"))
        .suppress(Suppressed.until_window_closes())
        .to_stream()
        .to("suppress-session-out", sessions(LONG))
    ),
    "emit-final": emit_final,
}

SCENES: dict[str, Scene] = {
    **STATELESS,
    **AGGREGATIONS,
    **STREAM_JOINS,
    **TABLE_JOINS,
    **TABLES,
    **PROCESSORS,
    **COGROUPS,
    **FOREIGN_JOINS,
    **MORE_JOINS,
    **NULLS,
    **FINALS,
}
