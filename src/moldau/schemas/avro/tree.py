"""The tree of a parsed Avro schema.

Named types are shared: every reference to a record is the same object, so trees of recursive records have
cycles. The parser closes them after the last definition; a tree does not change afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
#: Names that need their namespace in a reference, because alone they are a type of Avro.
TYPE_NAMES: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}

Properties = dict[str, Any]
NO_PROPERTIES: Final[Properties] = {}


class Missing:
    """The default value of a field without one, because `None` is JSON's null."""


MISSING: Final = Missing()


class Name(NamedTuple):
    """The name of a record, enum or fixed type; `namespace` is None in the null namespace."""

    simple: str
    namespace: str | None
    full: str

    def within(self, namespace: str | None) -> str:
        """Return the shortest reference to this name from a namespace."""
        if self.namespace is not None and self.namespace == namespace and self.simple not in TYPE_NAMES:
            return self.simple
        return self.full


def name_of(text: str, namespace: str | None) -> Name:
    """Split a name; a dot in it takes precedence over `namespace`."""
    space, dot, simple = text.rpartition(".")
    if dot:
        namespace = space
    if not namespace:
        return Name(simple, None, simple)
    return Name(simple, namespace, f"{namespace}.{simple}")


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: Type
    properties: Properties = field(default_factory=dict)
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: Type
    properties: Properties = field(default_factory=dict)
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: list[Type]
    kind: str = "union"


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Type
    doc: str | None
    default: Any
    order: str
    aliases: list[str]
    properties: Properties


@dataclass(slots=True, eq=False)
class Record:
    name: Name
    doc: str | None
    is_error: bool
    fields: list[Field] = field(default_factory=list)
    properties: Properties = field(default_factory=dict)
    aliases: list[Name] = field(default_factory=list)
    by_name: dict[str, Field] = field(default_factory=dict)
    kind: str = "record"


@dataclass(slots=True, eq=False)
class Enum:
    name: Name
    doc: str | None
    symbols: list[str]
    default: str | None
    properties: Properties = field(default_factory=dict)
    aliases: list[Name] = field(default_factory=list)
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Fixed:
    name: Name
    doc: str | None
    size: int
    properties: Properties = field(default_factory=dict)
    aliases: list[Name] = field(default_factory=list)
    kind: str = "fixed"


@dataclass(slots=True, eq=False)
class Unresolved:
    """A reference to a type that is defined later, or that contains the reference."""

    full: str
    kind: str = "record"


Named = Record | Enum | Fixed
Type = Primitive | Array | Map | Union | Record | Enum | Fixed | Unresolved


def full_name(node: Type) -> str:
    """Return the name that identifies a type in a union."""
    if isinstance(node, Named):
        return node.name.full
    return node.full if isinstance(node, Unresolved) else node.kind
