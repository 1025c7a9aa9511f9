"""`KTable`: the last value of every key, and what can be done with it. An update with no value deletes its
key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.foreign_keys import foreign_key_join
from moldau.pipelines.streams.dsl.grouped_table import KGroupedTable
from moldau.pipelines.streams.dsl.parameters import (
    Function,
    Grouped,
    Materialized,
    Named,
    Suppressed,
    TableJoined,
)
from moldau.pipelines.streams.dsl.processors import ValueTransformerWithKey
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.table_joins import key_join
from moldau.pipelines.streams.dsl.transforming import transform_node
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Graph, Node, TableStore
from moldau.pipelines.streams.topology.operations import (
    TableFilter,
    TableMapValues,
    ToStream,
    ToTable,
    takes_key,
)
from moldau.pipelines.streams.topology.operations import TableSource as TableSourceOperation
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    JoinKind,
    Suppress,
    TableSelect,
    TableTableJoin,
)

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.kstream import KStream


def _name(name: Named | str | None) -> str | None:
    return name.name if isinstance(name, Named) else name


class KTable:
    """A table. What is not materialized by name is computed from its parents where it is needed."""

    def __init__(self, graph: Graph, node: Node, parents: tuple[KTable, ...] = ()) -> None:
        self.graph = graph
        self.node = node
        self._parents = parents

    @property
    def key_serde(self) -> Serde | None:
        return self.node.key_serde

    @property
    def value_serde(self) -> Serde | None:
        return self.node.value_serde

    @property
    def queryable_store_name(self) -> str | None:
        """The store's name if the user gave one."""
        store = self.node.store
        return store.name if store is not None and store.queryable else None

    def filter(
        self,
        predicate: Function,
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._filter(predicate, name, materialized, negated=False)

    def filter_not(
        self,
        predicate: Function,
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._filter(predicate, name, materialized, negated=True)

    def _filter(
        self,
        predicate: Function,
        name: Named | str | None,
        materialized: Materialized | None,
        *,
        negated: bool,
    ) -> KTable:
        store = self._named_store(materialized, "KTABLE-FILTER-")
        given = materialized or Materialized()
        node = Node(
            self.graph.name_or_new(_name(name), "KTABLE-FILTER-"),
            TableFilter(predicate, negated, store),
            (self.node,),
            given.key_serde or self.key_serde,
            given.value_serde or self.value_serde,
            store,
            is_table=True,
        )
        return KTable(self.graph, self.graph.add(self.node, node), (self,))

    def map_values(
        self,
        mapper: Function,
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        store = self._named_store(materialized, "KTABLE-MAPVALUES-")
        given = materialized or Materialized()
        node = Node(
            self.graph.name_or_new(_name(name), "KTABLE-MAPVALUES-"),
            TableMapValues(mapper, takes_key(mapper, 1), store),
            (self.node,),
            given.key_serde or self.key_serde,
            given.value_serde,
            store,
            is_table=True,
        )
        return KTable(self.graph, self.graph.add(self.node, node), (self,))

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformerWithKey],
        *store_names: str,
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """By a transformer of your own, with stores that the program added."""
        node = transform_node(self, supplier, store_names, _name(name), materialized)
        return KTable(self.graph, node, (self,))

    def _named_store(self, materialized: Materialized | None, prefix: str) -> TableStore | None:
        """Only a store with a name is made; one without uses up a number all the same."""
        if materialized is None:
            return None
        if materialized.name is None:
            self.graph.new_store_name(prefix)
            return None
        return self.graph.new_store(materialized, prefix, self._windows())

    def to_stream(self, mapper: Function | None = None, name: Named | str | None = None) -> KStream:
        """The table's updates, under new keys if a mapper is given."""
        from moldau.pipelines.streams.dsl.kstream import KStream

        own_name = self.graph.name_or_new(_name(name), "KTABLE-TOSTREAM-")
        node = Node(own_name, ToStream(), (self.node,), self.key_serde, self.value_serde)
        stream = KStream(self.graph, self.graph.add(self.node, node))
        return stream if mapper is None else stream.select_key(mapper)

    def suppress(self, suppressed: Suppressed) -> KTable:
        """Fewer updates: only the last of a window, or of a time."""
        if suppressed.limit_ms is None and self._windows() is None:
            raise TopologyException(
                f"{self.node.name} has no windows that could close: "
                "suppress until_window_closes needs a windowed aggregate, others use until_time_limit"
            )
        name = suppressed.name or self.graph.new_name("KTABLE-SUPPRESS-")
        store_name = (
            f"{suppressed.name}-store" if suppressed.name else self.graph.new_store_name("KTABLE-SUPPRESS-")
        )
        store = TableStore(store_name, queryable=False, materialized=True, windows=self._windows())
        if self.node.store is not None:
            store.kind = self.node.store.kind
        node = Node(
            name,
            Suppress(suppressed.limit_ms, store_name, suppressed.buffer),
            (self.node,),
            self.key_serde,
            self.value_serde,
            store,
            is_table=True,
        )
        return KTable(self.graph, self.graph.add(self.node, node), (self,))

    def group_by(
        self, selector: Callable[[Any, Any], tuple[Any, Any]], grouped: Grouped | None = None
    ) -> KGroupedTable:
        """By another key and value, which a function of key and value gives."""
        given = grouped or Grouped()
        node = Node(
            self.graph.name_or_new(given.name, "KTABLE-SELECT-"),
            TableSelect(selector),
            (self.node,),
            given.key_serde,
            given.value_serde,
        )
        self.graph.add(self.node, node)
        self.send_old_values()
        return KGroupedTable(self.graph, node, given)

    def join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        table_joined: TableJoined | None = None,
    ) -> KTable:
        """By equal keys; or with the row of the other table whose key the extractor gives, a function of the
        value, or of key and value."""
        by = foreign_key_extractor, table_joined
        return self._join("inner", other, joiner, _name(name), materialized, *by)

    def left_join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        table_joined: TableJoined | None = None,
    ) -> KTable:
        """As `join`, with a result for every row of this table."""
        by = foreign_key_extractor, table_joined
        return self._join("left", other, joiner, _name(name), materialized, *by)

    def outer_join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._join("outer", other, joiner, _name(name), materialized)

    def _join(
        self,
        kind: JoinKind,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        name: str | None,
        materialized: Materialized | None,
        extractor: Callable[..., Any] | None = None,
        table_joined: TableJoined | None = None,
    ) -> KTable:
        if not isinstance(other, KTable):
            raise TopologyException(
                f"A table is joined with a table, not with a {type(other).__name__}: "
                "join the stream with this table, or make it a table with to_table()"
            )
        if extractor is None and table_joined is not None:
            raise TopologyException("table_joined is for joins by foreign keys: give a foreign_key_extractor")
        if extractor is None:
            node = key_join(kind, self, other, joiner, name, materialized)
        else:
            joined, left = table_joined or TableJoined(name=name), kind == "left"
            node = foreign_key_join(self, other, extractor, joiner, joined, materialized, left=left)
        return KTable(self.graph, node, (self, other))

    def getter_stores(self) -> list[str]:
        """The stores in which this table's rows are looked up; a table that is read so gets its store."""
        operation, store = self.node.operation, self.node.store
        if store is not None and isinstance(operation, TableSourceOperation | ToTable | ForeignKeyJoin):
            store.materialized = True
        if isinstance(operation, Suppress):
            return [operation.store_name, *self._parents[0].getter_stores()]
        if store is not None:
            return [store.name]
        return list(dict.fromkeys(name for parent in self._parents for name in parent.getter_stores()))

    def send_old_values(self) -> None:
        """Somebody below needs to know what an update replaces, which takes a store."""
        operation, store = self.node.operation, self.node.store
        if isinstance(operation, TableSourceOperation | ToTable | ForeignKeyJoin):
            if store is not None:
                store.materialized = True
        elif store is None or isinstance(operation, TableTableJoin | Suppress):
            for parent in self._parents:
                parent.send_old_values()

    def _windows(self) -> Any:
        """The windows of the aggregate that this table comes from."""
        operation = self.node.operation
        if isinstance(operation, Aggregate):
            return operation.windows
        return self._parents[0]._windows() if len(self._parents) == 1 else None
