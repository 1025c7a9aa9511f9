"""What is known of a SELECT while it is compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.pipelines.sql.compile.plan import Purpose
from moldau.pipelines.sql.compile.scope import Scope
from moldau.pipelines.sql.parse.statements import Item, Select, SourceKind


@dataclass
class Selected:
    """An expression that is selected, with its name in the result."""

    name: str
    sql: str
    item: Item
    forced_value: bool = False


@dataclass
class Compilation:
    select: Select
    purpose: Purpose
    scope: Scope
    #: The window that rows are grouped by, in Spark's words.
    window: str | None
    grouped: list[str] = field(default_factory=list)
    aggregates: bool = False

    @property
    def over_tables(self) -> bool:
        return self.scope.entries[0].source.is_table

    @property
    def kind(self) -> SourceKind:
        return "TABLE" if self.aggregates or self.over_tables else "STREAM"
