"""The streams, tables and persistent queries of a cluster. `catalog.topic` stores them.

Names are case-insensitive, and shown as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from moldau.pipelines.sql.errors import SqlError, suggestion
from moldau.pipelines.sql.parse.statements import ColumnDefinition, Named, SourceKind, Window

#: The pseudo columns of every record, by ksqlDB's names.
PSEUDO_COLUMNS = ("ROWTIME", "ROWPARTITION", "ROWOFFSET")
WINDOW_BOUNDS = ("WINDOWSTART", "WINDOWEND")


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or a table: a topic, and the format of its records."""

    kind: SourceKind
    name: str
    topic: str
    columns: tuple[ColumnDefinition, ...]
    key_format: str
    value_format: str
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Set if the keys of the topic are windowed.
    window: Window | None = None
    statement: str = ""
    #: The persistent query that was created together with it.
    query: str | None = None

    @property
    def is_table(self) -> bool:
        return self.kind == "TABLE"

    @property
    def has_headers(self) -> bool:
        """Whether a column holds record headers."""
        return any(column.role == "HEADERS" for column in self.columns)

    @property
    def key_columns(self) -> tuple[ColumnDefinition, ...]:
        return tuple(column for column in self.columns if column.role == "KEY")

    @property
    def value_columns(self) -> tuple[ColumnDefinition, ...]:
        return tuple(column for column in self.columns if column.role == "VALUE")

    def column(self, name: str) -> str | None:
        """Return the spelling of a column or pseudo column; None if there is none of that name."""
        for known in (*(column.name for column in self.columns), *self.pseudo_columns):
            if known.upper() == name.upper():
                return known
        return None

    @property
    def pseudo_columns(self) -> tuple[str, ...]:
        return (*PSEUDO_COLUMNS, *(WINDOW_BOUNDS if self.window else ()))


@dataclass(frozen=True, slots=True)
class PersistentQuery:
    """A query that writes to a topic until it is terminated."""

    id: str
    statement: str
    sink: str
    sources: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def paused(self) -> bool:
        return self.properties.get("paused") == "true"


class Catalog:
    """The definitions, by upper-case name."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._queries: dict[str, PersistentQuery] = {}

    def sources(self, kind: SourceKind | None = None) -> Iterator[Source]:
        return (source for _, source in sorted(self._sources.items()) if kind in (None, source.kind))

    def queries(self) -> Iterator[PersistentQuery]:
        return iter(list(self._queries.values()))

    def get(self, name: str) -> Source | None:
        return self._sources.get(name.upper())

    def find(self, named: Named) -> Source:
        source = self.get(named.name)
        if source is None:
            known = [source.name for source in self.sources()]
            hint = suggestion(named.name, known) or (
                f"Defined are {', '.join(known)}."
                if known
                else "Define one with CREATE STREAM … WITH (topic='…')."
            )
            raise SqlError(f"Unknown stream or table {named.name}", named.place, hint)
        return source

    def find_query(self, named: Named) -> PersistentQuery:
        query = self._queries.get(named.name.upper())
        if query is None:
            known = [query.id for query in self.queries()]
            hint = suggestion(named.name, known) or "SHOW QUERIES lists them."
            raise SqlError(f"Unknown query {named.name}", named.place, hint)
        return query

    def query(self, query_id: str) -> PersistentQuery | None:
        return self._queries.get(query_id.upper())

    def readers(self, name: str) -> list[PersistentQuery]:
        return [q for q in self.queries() if name.upper() in (source.upper() for source in q.sources)]

    def writers(self, name: str) -> list[PersistentQuery]:
        return [query for query in self.queries() if query.sink.upper() == name.upper()]

    def new_query_id(self, prefix: str) -> str:
        numbers = [int(query.id.rpartition("_")[2]) for query in self.queries()]
        return f"{prefix}_{max(numbers, default=0) + 1}".upper()

    def put(self, definition: Source | PersistentQuery) -> None:
        if isinstance(definition, Source):
            self._sources[definition.name.upper()] = definition
        else:
            self._queries[definition.id.upper()] = definition

    def remove(self, definition: Source | PersistentQuery) -> None:
        if isinstance(definition, Source):
            self._sources.pop(definition.name.upper(), None)
        else:
            self._queries.pop(definition.id.upper(), None)
