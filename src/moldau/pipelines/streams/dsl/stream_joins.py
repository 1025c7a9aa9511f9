"""Joins of a stream: with another stream in windows, with a table, with a global table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.parameters import Function, Joined, StreamJoined
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.windows import JoinWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Node, repartition_node
from moldau.pipelines.streams.topology.operations import takes_key
from moldau.pipelines.streams.topology.stateful import (
    GlobalTableJoin,
    JoinKind,
    JoinWindowed,
    StreamStreamJoin,
    StreamTableJoin,
)

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.builder import GlobalKTable
    from moldau.pipelines.streams.dsl.kstream import KStream
    from moldau.pipelines.streams.dsl.ktable import KTable


def join(
    kind: JoinKind,
    stream: KStream,
    other: KStream | KTable | GlobalKTable,
    joiner: Function,
    windows: JoinWindows | None,
    joined: StreamJoined | Joined | None,
    key_selector: Callable[[Any, Any], Any] | None,
    name: str | None,
) -> KStream:
    """Add the nodes of a join; the type of `other` decides which kind of join it is."""
    from moldau.pipelines.streams.dsl.builder import GlobalKTable
    from moldau.pipelines.streams.dsl.ktable import KTable

    if isinstance(other, GlobalKTable):
        if key_selector is None:
            raise TopologyException(
                "A join with a global table needs key_selector, which returns the key to look up"
            )
        return _with_global_table(kind, stream, other, joiner, key_selector, name)
    if isinstance(other, KTable):
        if windows is not None:
            raise TopologyException("A stream-table join has no windows: omit them")
        given = joined if isinstance(joined, Joined) else Joined(name=name)
        return _with_table(kind, stream, other, joiner, given)
    if windows is None:
        raise TopologyException(
            "A stream-stream join needs windows: pass for example "
            "JoinWindows.of_time_difference_with_no_grace(60_000), or convert one side with to_table()"
        )
    return _with_stream(kind, stream, other, joiner, windows, _stream_joined(joined))


def _stream_joined(joined: StreamJoined | Joined | None) -> StreamJoined:
    if isinstance(joined, Joined):
        raise TopologyException("A stream-stream join takes StreamJoined; Joined is for stream-table joins")
    return joined or StreamJoined()


def _repartitioned(
    stream: KStream, prefix: str, key_serde: Serde | None, value_serde: Serde | None
) -> KStream:
    """Return the stream after its repartition topic, which the unnamed joins of one stream share."""
    from moldau.pipelines.streams.dsl.kstream import KStream

    if not stream.repartition_required:
        return stream
    key_serde, value_serde = key_serde or stream.key_serde, value_serde or stream.value_serde
    through = repartition_node(stream.graph, prefix, key_serde, value_serde)
    if stream.repartitioned is None or prefix != stream.node.name:
        through.ports = (stream.node,)
        stream.repartitioned = stream.graph.add(stream.node, through)
    return KStream(stream.graph, stream.repartitioned)


def _with_stream(
    kind: JoinKind,
    stream: KStream,
    other: KStream,
    joiner: Function,
    windows: JoinWindows,
    joined: StreamJoined,
) -> KStream:
    from moldau.pipelines.streams.dsl.kstream import KStream

    graph, name = stream.graph, joined.name
    left = _repartitioned(
        stream, f"{name}-left" if name else stream.node.name, joined.key_serde, joined.value_serde
    )
    right = _repartitioned(
        other, f"{name}-right" if name else other.node.name, joined.key_serde, joined.other_value_serde
    )
    operation, merge_name = _stream_join(kind, left, joiner, windows, joined)
    for side, processor, store in (
        (left, operation.this_windowed, operation.this_store),
        (right, operation.other_windowed, operation.other_store),
    ):
        graph.add(side.node, Node(store, JoinWindowed(processor, store), (side.node,)))
    node = Node(merge_name, operation, (left.node, right.node), joined.key_serde)
    graph.add((left.node, right.node), node)
    return KStream(graph, node)


def _stream_join(
    kind: JoinKind, left: KStream, joiner: Function, windows: JoinWindows, joined: StreamJoined
) -> tuple[StreamStreamJoin, str]:
    """Return the join, with the names that Java gives its processors and stores, and its node's name."""
    graph, name, base = left.graph, joined.name, joined.store_name
    this_suffix = "-outer-this-join" if kind == "outer" else "-this-join"
    other_suffix = "-other-join" if kind == "inner" else "-outer-other-join"
    this_windowed = graph.name_or_new(name, "KSTREAM-WINDOWED-", "-this-windowed")
    other_windowed = graph.name_or_new(name, "KSTREAM-WINDOWED-", "-other-windowed")
    this_new = graph.new_name("KSTREAM-OUTERTHIS-" if kind == "outer" else "KSTREAM-JOINTHIS-")
    other_new = graph.new_name("KSTREAM-JOINOTHER-" if kind == "inner" else "KSTREAM-OUTEROTHER-")
    merge_name = graph.name_or_new(name, "KSTREAM-MERGE-", "-merge")
    outer = None
    if kind != "inner":
        shared = "-outer-shared-join" if kind == "outer" else "-left-shared-join"
        outer = f"{base}{shared}-store" if base else f"KSTREAM-OUTERSHARED-{this_new[-10:]}-store"
    operation = StreamStreamJoin(
        kind=kind,
        joiner=joiner,
        with_key=takes_key(joiner, 2),
        windows=windows,
        this_windowed=this_windowed,
        other_windowed=other_windowed,
        this_join=f"{name}{this_suffix}" if name else this_new,
        other_join=f"{name}{other_suffix}" if name else other_new,
        this_store=f"{f'{base}{this_suffix}' if base else this_new}-store",
        other_store=f"{f'{base}{other_suffix}' if base else other_new}-store",
        outer_store=outer,
    )
    return operation, merge_name


def _with_table(kind: JoinKind, stream: KStream, table: KTable, joiner: Function, joined: Joined) -> KStream:
    from moldau.pipelines.streams.dsl.kstream import KStream

    if kind == "outer":
        raise TopologyException("A stream and a table have no outer join: use left_join")
    name = joined.name
    left = _repartitioned(stream, name or stream.node.name, joined.key_serde, joined.value_serde)
    own_name = left.graph.name_or_new(name, "KSTREAM-LEFTJOIN-" if kind == "left" else "KSTREAM-JOIN-")
    operation = StreamTableJoin(kind, joiner, takes_key(joiner, 2), tuple(table.getter_stores()))
    node = Node(own_name, operation, (left.node, table.node), joined.key_serde or left.key_serde)
    left.graph.add(left.node, node)
    table.node.readers.append(node)
    return KStream(left.graph, node)


def _with_global_table(
    kind: JoinKind,
    stream: KStream,
    table: GlobalKTable,
    joiner: Function,
    key_selector: Callable[[Any, Any], Any],
    name: str | None,
) -> KStream:
    from moldau.pipelines.streams.dsl.kstream import KStream

    if kind == "outer":
        raise TopologyException("A stream and a global table have no outer join: use left_join")
    own_name = stream.graph.name_or_new(name, "KSTREAM-LEFTJOIN-")
    operation = GlobalTableJoin(kind, key_selector, joiner, takes_key(joiner, 2))
    node = Node(own_name, operation, (stream.node, table.node), stream.key_serde)
    stream.graph.add(stream.node, node)
    return KStream(stream.graph, node, repartition_required=stream.repartition_required)
