"""The nodes of a join of two tables by their keys; those by a foreign key are in `foreign_keys`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.parameters import Materialized
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import JoinKind, TableTableJoin

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.ktable import KTable


def key_join(
    kind: JoinKind,
    table: KTable,
    other: KTable,
    joiner: Callable[[Any, Any], Any],
    name: str | None,
    materialized: Materialized | None,
) -> Node:
    """The node of the result; numbers are used up in Java's order."""
    graph = table.graph
    store = None if materialized is None else graph.new_store(materialized, "KTABLE-MERGE-")
    merge_name = graph.name_or_new(name, "KTABLE-MERGE-")
    if kind != "inner":
        table.send_old_values()
    if kind == "outer":
        other.send_old_values()
    given = materialized or Materialized()
    operation = TableTableJoin(
        kind=kind,
        joiner=joiner,
        this_name=table.node.name,
        other_name=other.node.name,
        this_join=graph.name_or_new(name, "KTABLE-JOINTHIS-", "-join-this"),
        other_join=graph.name_or_new(name, "KTABLE-JOINOTHER-", "-join-other"),
        this_stores=tuple(table.getter_stores()),
        other_stores=tuple(other.getter_stores()),
        store=store,
    )
    node = Node(
        merge_name,
        operation,
        (table.node, other.node),
        given.key_serde or table.key_serde,
        given.value_serde,
        store,
        is_table=True,
    )
    graph.add(table.node, node)
    return graph.add(other.node, node)
