"""Parsed statements. `text` is the source text without the semicolon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from moldau.pipelines.sql.errors import Place
from moldau.pipelines.sql.types import SqlType

SourceKind = Literal["STREAM", "TABLE"]
ColumnRole = Literal["KEY", "HEADERS", "VALUE"]


@dataclass(frozen=True, slots=True)
class Named:
    """A name and its place."""

    name: str
    place: Place


class Properties(dict[str, str]):
    """The properties of WITH (…), and the places of their values."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, Place] = {}

    def place_of(self, *names: str) -> Place | None:
        """Return the place of the first of these properties that is given."""
        return next((self.places[name] for name in names if name in self.places), None)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: SqlType
    role: ColumnRole = "VALUE"
    #: The header of HEADER('key').
    header: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A selected expression. `star` is "*", or the alias before ".*"; then there is no expression."""

    expression: exp.Expression
    alias: str | None
    place: Place
    star: str | None = None


@dataclass(frozen=True, slots=True)
class From:
    source: Named
    alias: str


@dataclass(frozen=True, slots=True)
class Join:
    kind: Literal["INNER", "LEFT", "RIGHT", "FULL"]
    source: From
    on: exp.Expression
    place: Place
    before_ms: int | None = None
    after_ms: int | None = None
    grace_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    kind: Literal["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int
    advance_ms: int | None = None
    grace_ms: int | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Select:
    text: str
    items: tuple[Item, ...]
    source: From
    place: Place
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: exp.Expression | None = None
    group_by: tuple[exp.Expression, ...] = ()
    partition_by: tuple[exp.Expression, ...] = ()
    having: exp.Expression | None = None
    order_by: str | None = None
    emit: Literal["CHANGES", "FINAL"] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CreateSource:
    kind: SourceKind
    name: Named
    columns: tuple[ColumnDefinition, ...]
    properties: Properties
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateAs:
    kind: SourceKind
    name: Named
    properties: Properties
    select: Select
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertSelect:
    name: Named
    select: Select
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class InsertValues:
    name: Named
    columns: tuple[Named, ...]
    rows: tuple[tuple[exp.Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Show:
    what: str
    extended: bool = False
    #: Whether to include internal topics.
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Describe:
    name: Named
    extended: bool = False
    function: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    #: A query, or the name of a persistent query.
    query: Select | Named


@dataclass(frozen=True, slots=True)
class Terminate:
    #: None stands for ALL.
    query: Named | None


@dataclass(frozen=True, slots=True)
class Pause:
    #: None stands for ALL.
    query: Named | None
    resume: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    kind: SourceKind
    name: Named
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    topic: Named
    from_beginning: bool = False
    interval: int = 1
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SetProperty:
    name: str
    #: None resets it to the default.
    value: str | None


@dataclass(frozen=True, slots=True)
class RunScript:
    path: str
    place: Place


Statement = (
    CreateSource
    | CreateAs
    | InsertSelect
    | InsertValues
    | Select
    | Show
    | Describe
    | Explain
    | Terminate
    | Pause
    | Drop
    | Print
    | SetProperty
    | RunScript
)
