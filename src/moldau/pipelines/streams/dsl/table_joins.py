"""Joins of two tables: by their keys, and by a foreign key.

    orders.join(customers, joiner, foreign_key_extractor=lambda order: order["customer"])

In a foreign-key join (KIP-213) every row of this table *subscribes* to the key of the other table that it
references: it writes a record to a topic that is partitioned like the other table. Subscriptions are stored
next to the other table. Whenever a subscription or a row changes, a response with the row is written to a
second topic, which is partitioned like this table. A response carries a hash of the value it was made for;
`tasks.foreign_key_results` describes what happens if the row has changed since. The names of nodes and topics
and the bytes of their records are those of Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.parameters import Materialized, TableJoined
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.topology.graph import Graph, Node
from moldau.pipelines.streams.topology.operations import Repartition, takes_key
from moldau.pipelines.streams.topology.stateful import (
    ForeignKeyJoin,
    ForeignKeyLookup,
    ForeignKeySubscribe,
    JoinKind,
    TableTableJoin,
)

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.ktable import KTable

Partitioner = Callable[[str, Any, Any, int], int]

_FK_JOIN = "KTABLE-FK-JOIN-"
_REGISTRATION = f"{_FK_JOIN}SUBSCRIPTION-REGISTRATION-"
_PROCESSOR = f"{_FK_JOIN}SUBSCRIPTION-PROCESSOR-"
_RESPONSE = f"{_FK_JOIN}SUBSCRIPTION-RESPONSE-"
_OUTPUT = f"{_FK_JOIN}OUTPUT-"


def key_join(
    kind: JoinKind,
    table: KTable,
    other: KTable,
    joiner: Callable[[Any, Any], Any],
    name: str | None,
    materialized: Materialized | None,
) -> Node:
    """Add the node of a join by key. Node numbers are taken in the order in which Java takes them."""
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


class _Names:
    """The names of all nodes and topics of a foreign-key join, numbered in Java's order."""

    def __init__(self, graph: Graph, name: str | None) -> None:
        def new(prefix: str, suffix: str) -> str:
            return graph.name_or_new(name, prefix, suffix)

        self.subscription_topic = new(_REGISTRATION, "-subscription-registration") + "-topic"
        self.subscribe = new(_REGISTRATION, "-subscription-registration-processor")
        self.subscription_sink = new("KTABLE-SINK-", "-subscription-registration-sink")
        self.subscription_source = new("KTABLE-SOURCE-", "-subscription-registration-source")
        self.store = new(f"{_FK_JOIN}SUBSCRIPTION-STATE-STORE-", "-subscription-store")
        self.receive = new(_PROCESSOR, "-subscription-receive")
        self.lookup = new(_PROCESSOR, "-subscription-join-foreign")
        self.changed = new(_PROCESSOR, "-foreign-join-subscription")
        self.response_topic = new(_RESPONSE, "-subscription-response") + "-topic"
        self.response_sink = new("KTABLE-SINK-", "-subscription-response-sink")
        self.response_source = new("KTABLE-SOURCE-", "-subscription-response-source")
        self.resolver = new(f"{_RESPONSE}RESOLVER-PROCESSOR-", "-subscription-response-resolver")
        self.result = new(_OUTPUT, "-result")


def foreign_key_join(
    table: KTable,
    other: KTable,
    extractor: Callable[..., Any],
    joiner: Callable[[Any, Any], Any],
    joined: TableJoined,
    materialized: Materialized | None,
    *,
    left: bool,
) -> Node:
    """Add the nodes of a foreign-key join, and return the node of its result."""
    graph = table.graph
    other.send_old_values()
    table.send_old_values()
    names = _Names(graph, joined.name)
    store = graph.new_store(materialized, _OUTPUT, materialize=False)
    responses = _lookup(other, table, _subscribe(table, other, extractor, joined, names, left), joined, names)
    given = materialized or Materialized()
    operation = ForeignKeyJoin(joiner, left, names.resolver, tuple(table.getter_stores()), store)
    node = Node(
        names.result,
        operation,
        (table.node, responses),
        given.key_serde or table.key_serde,
        given.value_serde,
        store,
        is_table=True,
    )
    table.node.readers.append(node)
    return graph.add(responses, node)


def _subscribe(
    table: KTable,
    other: KTable,
    extractor: Callable[..., Any],
    joined: TableJoined,
    names: _Names,
    left: bool,
) -> Node:
    """Add the subscription topic, keyed and partitioned like the other table."""
    operation = ForeignKeySubscribe(extractor, takes_key(extractor, 1), left)
    node = table.graph.add(table.node, Node(names.subscribe, operation, (table.node,)))
    topic = Repartition(
        names.subscription_topic,
        names.subscription_sink,
        names.subscription_source,
        None,
        None,
        Serdes.bytes(),
        partitioner=_by_key(joined.other_partitioner),
        keys_of=other.node,
    )
    return table.graph.add(node, Node(names.subscription_source, topic, (node,)))


def _lookup(other: KTable, table: KTable, subscriptions: Node, joined: TableJoined, names: _Names) -> Node:
    """Add the response topic, keyed and partitioned like the first table."""
    graph = other.graph
    operation = ForeignKeyLookup(
        names.receive, names.changed, names.store, other.node.name, tuple(other.getter_stores())
    )
    node = graph.add((subscriptions, other.node), Node(names.lookup, operation, (subscriptions, other.node)))
    topic = Repartition(
        names.response_topic,
        names.response_sink,
        names.response_source,
        None,
        None,
        None,
        partitioner=_by_key(joined.partitioner),
        keys_of=table.node,
        values_of=other.node,
        written_by=(names.lookup, names.changed),
    )
    return graph.add(node, Node(names.response_source, topic, (node,)))


@dataclass(frozen=True, slots=True)
class _KeyPartitioner:
    """Calls a partitioner without a value: subscriptions and responses carry the table's key only."""

    partitioner: Partitioner

    def __call__(self, topic: str, key: Any, value: object, partitions: int) -> int:
        return self.partitioner(topic, key, None, partitions)


def _by_key(partitioner: Partitioner | None) -> Partitioner | None:
    return None if partitioner is None else _KeyPartitioner(partitioner)
