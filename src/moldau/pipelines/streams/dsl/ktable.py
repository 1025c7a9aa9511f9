"""`KTable`: the latest value of every key, and the operators that can be applied to it.

An update without a value (a tombstone) deletes its key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.grouped_table import KGroupedTable
from moldau.pipelines.streams.dsl.parameters import (
    Function,
    Grouped,
    Materialized,
    Named,
    Suppressed,
    TableJoined,
    given_name,
)
from moldau.pipelines.streams.dsl.processors import TransformerSupplier, ValueTransformerWithKey
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.table_joins import foreign_key_join, key_join
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Graph, Node, TableStore
from moldau.pipelines.streams.topology.operations import (
    TableFilter,
    TableMapValues,
    TableSource,
    ToStream,
    ToTable,
    takes_key,
)
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    JoinKind,
    Process,
    Suppress,
    TableSelect,
    TableTableJoin,
)

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.kstream import KStream


class KTable:
    """A table. A table without a store is computed from its parents where its rows are needed."""

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
        """The name of the store if the user named it."""
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
            self.graph.name_or_new(given_name(name), "KTABLE-FILTER-"),
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
            self.graph.name_or_new(given_name(name), "KTABLE-MAPVALUES-"),
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
        """Apply a custom transformer to the values, with state stores that the program added."""
        prefix = "KTABLE-TRANSFORMVALUES-"
        given = materialized or Materialized()
        # As in Java, an unnamed store is not created and, unlike in `_named_store`, takes no number.
        store = None if given.name is None else self.graph.new_store(given, prefix)
        node = Node(
            self.graph.name_or_new(given_name(name), prefix),
            Process(TransformerSupplier(supplier), store_names, fixed_key=True),
            (self.node,),
            given.key_serde or self.key_serde,
            given.value_serde,
            store,
            is_table=True,
        )
        return KTable(self.graph, self.graph.add(self.node, node), (self,))

    def _named_store(self, materialized: Materialized | None, prefix: str) -> TableStore | None:
        """Create a store only if it is named; as in Java, an unnamed one takes a number all the same."""
        if materialized is None:
            return None
        if materialized.name is None:
            self.graph.new_store_name(prefix)
            return None
        return self.graph.new_store(materialized, prefix, self._windows())

    def to_stream(self, mapper: Function | None = None, name: Named | str | None = None) -> KStream:
        """Return the stream of the table's updates, with new keys if a mapper is given."""
        from moldau.pipelines.streams.dsl.kstream import KStream

        own_name = self.graph.name_or_new(given_name(name), "KTABLE-TOSTREAM-")
        node = Node(own_name, ToStream(), (self.node,), self.key_serde, self.value_serde)
        stream = KStream(self.graph, self.graph.add(self.node, node))
        return stream if mapper is None else stream.select_key(mapper)

    def suppress(self, suppressed: Suppressed) -> KTable:
        """Emit only the last update of a window, or of each time interval."""
        if suppressed.limit_ms is None and self._windows() is None:
            raise TopologyException(
                f"{self.node.name} is not windowed: until_window_closes needs a windowed aggregate; "
                "use until_time_limit"
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
        """Group the rows by another key. The selector takes key and value and returns the new pair."""
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
        """Join by key, or by the foreign key that the extractor returns. The extractor takes the value, or
        key and value."""
        by = foreign_key_extractor, table_joined
        return self._join("inner", other, joiner, given_name(name), materialized, *by)

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
        """Join like `join`, with a result for every row of this table."""
        by = foreign_key_extractor, table_joined
        return self._join("left", other, joiner, given_name(name), materialized, *by)

    def outer_join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._join("outer", other, joiner, given_name(name), materialized)

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
                f"A table can be joined only with a table, not with a {type(other).__name__}: "
                "join the stream with this table, or convert it with to_table()"
            )
        if extractor is None and table_joined is not None:
            raise TopologyException("table_joined is for foreign-key joins: pass a foreign_key_extractor")
        if extractor is None:
            node = key_join(kind, self, other, joiner, name, materialized)
        else:
            joined, left = table_joined or TableJoined(name=name), kind == "left"
            node = foreign_key_join(self, other, extractor, joiner, joined, materialized, left=left)
        return KTable(self.graph, node, (self, other))

    def getter_stores(self) -> list[str]:
        """Return the stores in which this table's rows are looked up, and materialize them if necessary."""
        operation, store = self.node.operation, self.node.store
        if store is not None and isinstance(operation, TableSource | ToTable | ForeignKeyJoin):
            store.materialized = True
        if isinstance(operation, Suppress):
            return [operation.store_name, *self._parents[0].getter_stores()]
        if store is not None:
            return [store.name]
        return list(dict.fromkeys(name for parent in self._parents for name in parent.getter_stores()))

    def send_old_values(self) -> None:
        """Materialize this table, because an operator downstream needs the old value of each update."""
        operation, store = self.node.operation, self.node.store
        if isinstance(operation, TableSource | ToTable | ForeignKeyJoin):
            if store is not None:
                store.materialized = True
        elif store is None or isinstance(operation, TableTableJoin | Suppress):
            for parent in self._parents:
                parent.send_old_values()

    def _windows(self) -> Any:
        """Return the windows of the aggregate that this table is computed from."""
        operation = self.node.operation
        if isinstance(operation, Aggregate):
            return operation.windows
        return self._parents[0]._windows() if len(self._parents) == 1 else None
