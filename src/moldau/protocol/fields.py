"""The parts of message declarations: versions, fields, wire types.

Nothing is computed here: a declaration is kept as it is until a codec is compiled from it.
"""

from __future__ import annotations

import struct as binary
from typing import Any, Final, NamedTuple

from moldau.base.ids import ZERO_UUID

#: Marks a default that is created for every message, or a field without a default.
FRESH: Final[Any] = type("Fresh", (), {"__slots__": (), "__repr__": lambda self: "FRESH"})()


class Versions(NamedTuple):
    """An inclusive range of versions; empty if `first` is greater than `last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """Parse Kafka's notation: "3-13", "9+", "0" or "none"."""
        if text is None or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 0x7FFF)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def has(self, version: int) -> bool:
        return self.first <= version <= self.last


class Field:
    """One field as declared. `type` is a `Scalar` or a `Struct` class; `is_array` makes it a list.

    The value of a `secret` field does not appear in the `repr` of its struct, and so in no log.
    """

    __slots__ = (
        "default",
        "ignorable",
        "is_array",
        "name",
        "nullable_versions",
        "secret",
        "tag",
        "tagged_versions",
        "type",
        "version_text",
    )

    def __init__(
        self,
        type: Scalar | StructType,
        versions: str,
        *,
        is_array: bool = False,
        default: Any,
        nullable: str | None = None,
        tagged: str | None = None,
        tag: int | None = None,
        ignorable: bool = False,
        secret: bool = False,
    ) -> None:
        self.name = ""
        self.type = type
        self.is_array = is_array
        self.version_text = versions
        self.default = default
        self.nullable_versions = nullable
        self.tagged_versions = tagged
        self.tag = tag
        self.ignorable = ignorable
        self.secret = secret

    @property
    def versions(self) -> Versions:
        return Versions.parse(self.version_text)

    @property
    def nullable(self) -> Versions:
        return Versions.parse(self.nullable_versions)

    @property
    def tagged(self) -> Versions:
        return Versions.parse(self.tagged_versions)

    @property
    def struct(self) -> StructType | None:
        """The struct class of this field or of its elements; None for scalars."""
        return self.type if isinstance(self.type, StructType) else None

    def __repr__(self) -> str:
        prefix = "[]" if self.is_array else ""
        return f"<{self.name}: {prefix}{self.type.__name__} {self.version_text}>"


class Scalar:
    """A wire type. Called, it declares a field of that type; given to `array`, it is the type of elements.

    `format` is its code in `struct` and `size` its width in bytes; types of variable length have neither.
    """

    __slots__ = ("__name__", "default", "format", "size")

    def __init__(self, name: str, format: str | None, default: Any) -> None:
        self.__name__ = name
        self.format = format
        self.size = 0 if format is None else binary.calcsize(">" + format)
        self.default = default

    def __call__(
        self,
        versions: str,
        *,
        default: Any = FRESH,
        nullable: str | None = None,
        tagged: str | None = None,
        tag: int | None = None,
        ignorable: bool = False,
        secret: bool = False,
    ) -> Any:
        return Field(
            self,
            versions,
            default=self.default if default is FRESH else default,
            nullable=nullable,
            tagged=tagged,
            tag=tag,
            ignorable=ignorable,
            secret=secret,
        )

    def __repr__(self) -> str:
        return self.__name__


bool_ = Scalar("bool", "?", False)
int8 = Scalar("int8", "b", 0)
int16 = Scalar("int16", "h", 0)
uint16 = Scalar("uint16", "H", 0)
int32 = Scalar("int32", "i", 0)
uint32 = Scalar("uint32", "I", 0)
int64 = Scalar("int64", "q", 0)
float64 = Scalar("float64", "d", 0.0)
uuid = Scalar("uuid", "16s", ZERO_UUID)
string = Scalar("string", None, "")
bytes_ = Scalar("bytes", None, b"")
records_ = Scalar("records", None, None)


def array(
    type: Scalar | StructType,
    versions: str,
    *,
    default: Any = FRESH,
    nullable: str | None = None,
    tagged: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declare a list of scalars or structs; empty unless `default=None`."""
    return Field(
        type,
        versions,
        is_array=True,
        default=default,
        nullable=nullable,
        tagged=tagged,
        tag=tag,
        ignorable=ignorable,
    )


def struct(
    type: StructType,
    versions: str,
    *,
    default: Any = FRESH,
    nullable: str | None = None,
    tagged: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declare a single nested struct; the one with all defaults unless `default=None`."""
    return Field(
        type, versions, default=default, nullable=nullable, tagged=tagged, tag=tag, ignorable=ignorable
    )


class StructType(type):
    """Moves the fields of a class body into `FIELDS` and `__slots__`."""

    FIELDS: tuple[Field, ...]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> StructType:
        fields = []
        for attribute, value in namespace.items():
            if type(value) is Field:
                value.name = attribute
                fields.append(value)
        for field in fields:
            del namespace[field.name]
        namespace["FIELDS"] = tuple(fields)
        namespace["__slots__"] = tuple(field.name for field in fields)
        return super().__new__(mcls, name, bases, namespace, **options)
