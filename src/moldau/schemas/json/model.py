"""The kinds of schema that are compared: one class per kind, as the loaders of each draft produce them.

A schema with keywords of several kinds is a `Combined` of one node each. Nodes are immutable except for the
target of a `Reference`, which closes the cycles of recursive schemas. Identity is equality; `structure` tells
structurally equal nodes apart from different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple

from moldau.schemas.json import text
from moldau.schemas.json.patterns import Pattern


class Criterion(StrEnum):
    """How many of the subschemas must match."""

    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


class Annotations(NamedTuple):
    """What every kind may carry. Values are `None` where the keyword is missing."""

    id: str | None = None
    title: str | None = None
    description: str | None = None
    #: The canonical text of the default value.
    default: str | None = None
    #: The keyword `connect.type`, with which Kafka Connect marks its own types.
    connect_type: str | None = None
    #: The text of keywords that no draft defines.
    unknown: str | None = None


NONE = Annotations()


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Any schema."""

    annotations: Annotations = NONE


@dataclass(frozen=True, slots=True, eq=False)
class Empty(Schema):
    """`{}`: everything is valid."""


@dataclass(frozen=True, slots=True, eq=False)
class Anything(Empty):
    """`true`."""


@dataclass(frozen=True, slots=True, eq=False)
class Nothing(Schema):
    """`false`."""


@dataclass(frozen=True, slots=True, eq=False)
class Null(Schema):
    """The type null."""


@dataclass(frozen=True, slots=True, eq=False)
class Boolean(Schema):
    """The type boolean."""


@dataclass(frozen=True, slots=True, eq=False)
class String(Schema):
    """The type string, or only keywords about strings (`typed` is false)."""

    typed: bool = True
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Number(Schema):
    """The types number and integer, or only keywords about numbers."""

    typed: bool = True
    integer: bool = False
    minimum: Any = None
    maximum: Any = None
    exclusive_minimum: Any = None
    exclusive_maximum: Any = None
    multiple_of: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Object(Schema):
    """The type object, or only keywords about objects."""

    typed: bool = True
    properties: Mapping[str, Schema] | None = None
    pattern_properties: tuple[tuple[Pattern, Schema], ...] = ()
    required: frozenset[str] = frozenset()
    #: False is a closed content model.
    additional_allowed: bool = True
    additional: Schema | None = None
    unevaluated: Schema | None = None
    property_dependencies: Mapping[str, frozenset[str]] | None = None
    schema_dependencies: Mapping[str, Schema] | None = None
    property_names: Schema | None = None
    min_properties: int | None = None
    max_properties: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Array(Schema):
    """The type array, or only keywords about arrays."""

    typed: bool = True
    #: The schema of all items, or the schemas of the first items.
    all_items: Schema | None = None
    items: tuple[Schema, ...] = ()
    additional_allowed: bool = True
    additional: Schema | None = None
    unevaluated: Schema | None = None
    contains: Schema | None = None
    min_contains: Any = None
    max_contains: Any = None
    min_items: int | None = None
    max_items: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Enum(Schema):
    """`enum`: the canonical texts of the values, so that 1, 1.0, true and "1" are different."""

    values: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Const(Schema):
    """`const`: the canonical text of the value."""

    value: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Not(Schema):
    """`not`."""

    schema: Schema = Schema()


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Schema):
    """`if`, `then`, `else`."""

    parts: tuple[tuple[str, Schema], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Combined(Schema):
    """`allOf`, `anyOf`, `oneOf`; `generated` if it stands for adjacent keywords or a list of types."""

    criterion: Criterion = Criterion.ALL
    subschemas: tuple[Schema, ...] = ()
    generated: bool = False


@dataclass(slots=True, eq=False)
class Target:
    """What a reference refers to; filled in once the target is loaded."""

    schema: Schema | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reference(Schema):
    """`$ref`."""

    ref: str = ""
    target: Target = field(default_factory=Target)


def referred(schema: Schema) -> Schema:
    """Return the schema, or the target of a reference."""
    if isinstance(schema, Reference) and schema.target.schema is not None:
        return schema.target.schema
    return schema


class Structures:
    """Numbers structurally equal schemas alike. A reference is equal to another one with the same text."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[int, tuple[Schema, int]] = {}

    def number(self, schema: Schema) -> int:
        """Return the number of a schema; two schemas have the same one if their structure is equal."""
        stack = [schema]
        while stack:
            top = stack[-1]
            if id(top) in self._known:
                stack.pop()
                continue
            missing = [child for child in children(top) if id(child) not in self._known]
            if missing:
                stack.extend(missing)
                continue
            self._known[id(top)] = (top, self._numbers.setdefault(self._shape(top), len(self._numbers)))
            stack.pop()
        return self._known[id(schema)][1]

    def _shape(self, schema: Schema) -> tuple[Any, ...]:
        if isinstance(schema, Reference):
            return (Reference, schema.ref, schema.annotations)
        values = (getattr(schema, attribute.name) for attribute in fields(schema))
        return (type(schema), *(self._flat(value) for value in values))

    def _flat(self, value: Any) -> Any:
        if isinstance(value, Schema):
            return self._known[id(value)][1]
        if isinstance(value, Mapping):
            return frozenset((key, self._flat(inner)) for key, inner in value.items())
        if type(value) is tuple:
            return tuple(self._flat(inner) for inner in value)
        if isinstance(value, Pattern):
            return value.text
        return text.scalar(value) if isinstance(value, (int, str)) else value


def children(schema: Schema) -> Iterable[Schema]:
    """Yield the schemas directly inside a schema; none for a reference."""
    for attribute in fields(schema):
        yield from _schemas_in(getattr(schema, attribute.name))


def _schemas_in(value: Any) -> Iterable[Schema]:
    if isinstance(value, Schema):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _schemas_in(inner)
    elif type(value) is tuple:
        for inner in value:
            yield from _schemas_in(inner)
