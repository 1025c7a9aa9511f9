"""The declarations of a .proto file, in the order of the text.

Elements are syntax only: type names are as written, and nothing is checked across declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MAX_FIELD_NUMBER = (1 << 29) - 1
SCALARS = frozenset(
    (
        *("bool", "bytes", "double", "fixed32", "fixed64", "float", "int32", "int64"),
        *("sfixed32", "sfixed64", "sint32", "sint64", "string", "uint32", "uint64"),
    )
)
#: The types of map keys.
KEY_TYPES = SCALARS - {"bytes", "double", "float"}


class Literal(NamedTuple):
    """A number, boolean or enum constant in an option; strings are `str`."""

    text: str
    is_number: bool = False


class Option(NamedTuple):
    """`name = value` or, if the value is an option itself, `name.value`."""

    name: str
    value: OptionValue
    #: Custom options, whose names are written in parentheses.
    is_custom: bool = False


OptionValue = str | Literal | Option | list["OptionValue"] | dict[str, "OptionValue"]


class Range(NamedTuple):
    """Field numbers, both ends included."""

    first: int
    last: int


#: The values of one `reserved` declaration.
Reserved = tuple[int | Range | str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field; the type of a map is written `map<key, value>`."""

    label: str | None
    type: str
    name: str
    number: int
    options: tuple[Option, ...] = ()
    default: str | None = None
    json_name: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A group of proto2: a field and its message in one declaration."""

    label: str | None
    name: str
    number: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Fields of which at most one is set."""

    name: str
    fields: tuple[Field, ...]
    groups: tuple[Group, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Extensions:
    """Field numbers that other files may use to extend a message."""

    values: tuple[int | Range, ...]
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Extend:
    """Fields added to a message of another declaration."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant of an enum."""

    name: str
    number: int
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """An enum."""

    name: str
    constants: tuple[Constant, ...]
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message. `fields` are those outside of its oneofs."""

    name: str
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    groups: tuple[Group, ...] = ()
    types: tuple[Message | Enum, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    extends: tuple[Extend, ...] = ()


Type = Message | Enum


@dataclass(frozen=True, slots=True, eq=False)
class Rpc:
    """A method of a service."""

    name: str
    request: str
    response: str
    request_streaming: bool = False
    response_streaming: bool = False
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """A service."""

    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ProtoFile:
    """A .proto file. `syntax` and `edition` exclude each other; without both it is proto2."""

    syntax: str | None = None
    edition: str | None = None
    package: str | None = None
    imports: tuple[str, ...] = ()
    public_imports: tuple[str, ...] = ()
    weak_imports: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    services: tuple[Service, ...] = ()
    extends: tuple[Extend, ...] = ()
    options: tuple[Option, ...] = ()


def map_types(type_name: str) -> tuple[str, str] | None:
    """Return the key and value types of a map type, None for all other types."""
    if not type_name.startswith("map<"):
        return None
    key, _, value = type_name[4:-1].partition(",")
    return key.strip(), value.strip()


def map_entry_types(element: Type) -> tuple[str, str] | None:
    """Return the key and value types of a message that is the entry of a map, as descriptors declare maps."""
    if not isinstance(element, Message) or not any(_is_map_entry(option) for option in element.options):
        return None
    types = {field.name: field.type for field in element.fields}
    return (types["key"], types["value"]) if types.keys() >= {"key", "value"} else None


def _is_map_entry(option: Option) -> bool:
    return option.name == "map_entry" and option.value == Literal("true")


def messages(types: tuple[Type, ...]) -> list[Message]:
    """Return the messages among the types: their positions are the message indexes of the wire format."""
    return [element for element in types if isinstance(element, Message)]
