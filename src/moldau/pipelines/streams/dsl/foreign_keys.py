"""The nodes of a join of two tables by a foreign key.

    orders.join(customers, together, foreign_key_extractor=lambda order: order["customer"])

Every row of this table *subscribes* at the key of the other table that it names: a record in a topic that is
partitioned as the other table. There subscriptions are kept beside the table, and whenever one of them or a
row changes, the row is sent back through a second topic, partitioned as this table. A response says by a hash
for which value of the row it was made; `tasks.foreign_key_results` has what becomes of it if the row is
another one meanwhile. Names of nodes and topics and the bytes in them are those of Kafka Streams.
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
)

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.ktable import KTable

Partitioner = Callable[[str, Any, Any, int], int]

_FK_JOIN = "KTABLE-FK-JOIN-"
_REGISTRATION = f"{_FK_JOIN}SUBSCRIPTION-REGISTRATION-"
_PROCESSOR = f"{_FK_JOIN}SUBSCRIPTION-PROCESSOR-"
_RESPONSE = f"{_FK_JOIN}SUBSCRIPTION-RESPONSE-"
_OUTPUT = f"{_FK_JOIN}OUTPUT-"


class _Names:
    """All names of a join; numbers are used up in Java's order."""

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
    """The node of the result."""
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
    """The topic of subscriptions, by the keys of the other table."""
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
    """The topic of responses, by the keys of the first table and in its partitions."""
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
class _ByKey:
    """What is sent has the keys of a table, but not its values."""

    partitioner: Partitioner

    def __call__(self, topic: str, key: Any, value: object, partitions: int) -> int:
        return self.partitioner(topic, key, None, partitions)


def _by_key(partitioner: Partitioner | None) -> Partitioner | None:
    return None if partitioner is None else _ByKey(partitioner)
