"""Declaring messages, and the functions that encode and decode them.

A message is a class whose attributes are fields, each with the versions it exists in; one class serves all
versions of its API:

    class CreatableTopic(Struct):
        name: str = string("0+")
        num_partitions: int = int32("0+")

    class CreateTopicsRequest(Message, api_key=ApiKey.CREATE_TOPICS, versions="2-7", flexible="5+"):
        topics: list[CreatableTopic] = array(CreatableTopic, "0+")
        timeout_ms: int = int32("0+", default=60000)

Importing a declaration only collects its fields. The constructor and the codec of each version are compiled
at first use (`compiler`), so that a process compiles only what it needs.

Invariants: every field has a default, Kafka's own; constructors take keywords only; mutable defaults are
fresh, except that of a tagged struct, which is one shared instance that refuses changes (`shared_default`):
it stands for "not sent", and a partition of a Fetch response has three of them.
"""

from __future__ import annotations

import struct as binary
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

from moldau.protocol.errors import DecodeError, EncodeError
from moldau.protocol.fields import (
    FRESH,
    Field,
    Scalar,
    StructType,
    Versions,
    array,
    bool_,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    records_,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)

__all__ = [
    "Buffer",
    "DecodeError",
    "EncodeError",
    "Field",
    "Message",
    "Records",
    "Scalar",
    "Struct",
    "StructType",
    "Versions",
    "array",
    "bool_",
    "bytes_",
    "decode",
    "decode_prefix",
    "encode",
    "encode_bytes",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records_",
    "records_view",
    "shared_default",
    "shares_default",
    "string",
    "struct",
    "uint16",
    "uint32",
    "uuid",
]

Buffer = bytes | bytearray | memoryview
#: The value of a records field: one buffer, or several. Decoding returns a memoryview.
Records = bytes | bytearray | memoryview | Sequence[bytes | bytearray | memoryview]


@dataclass_transform(kw_only_default=True)
class Struct(metaclass=StructType):
    """Fields in a fixed order. Structs of one class with equal fields are equal."""

    FIELDS: ClassVar[tuple[Field, ...]]

    def __init__(self, **values: Any) -> None:
        # The first construction compiles the constructor of the class, which replaces this one.
        from moldau.protocol import compiler

        compiler.install_constructor(type(self))(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.FIELDS is not other.FIELDS:
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(
            f"{field.name}={'[hidden]' if field.secret else repr(getattr(self, field.name))}"
            for field in self.FIELDS
        )
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A top-level struct with its versions.

    `API_KEY` is the API key of a request or response, the record type of a stored record, else -1.
    """

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[Versions]
    FLEXIBLE: ClassVar[Versions]
    ENCODERS: ClassVar[dict[int, Callable[[Any], list[bytes | memoryview]]]]
    DECODERS: ClassVar[dict[int, Callable[[Buffer, int], tuple[Any, int]]]]

    def __init_subclass__(cls, *, versions: str, flexible: str = "none", api_key: int = -1) -> None:
        cls.API_KEY = api_key
        cls.VERSIONS = Versions.parse(versions)
        cls.FLEXIBLE = Versions.parse(flexible)
        cls.ENCODERS = {}
        cls.DECODERS = {}


_SHARED: dict[StructType, Struct] = {}


def shares_default(field: Field) -> bool:
    """Whether a field is a tagged struct whose default may be shared, as all its fields are immutable."""
    nested = field.struct
    if nested is None or field.is_array or field.default is not FRESH or field.tagged_versions is None:
        return False
    return all(inner.default is not FRESH for inner in nested.FIELDS)


def shared_default(struct_type: StructType) -> Any:
    """The shared, immutable instance of a struct with all defaults, which stands for "not sent"."""
    shared = _SHARED.get(struct_type)
    if shared is None:

        def refuse(self: Struct, name: str, value: object) -> NoReturn:
            raise AttributeError(f"this {struct_type.__name__} is a shared default: assign a new one instead")

        # `type.__new__`, because the fields are the base's: there are none to collect.
        frozen: Any = type.__new__(
            StructType, struct_type.__name__, (struct_type,), {"__slots__": (), "__setattr__": refuse}
        )
        shared = frozen.__new__(frozen)
        template = struct_type()
        for field in struct_type.FIELDS:
            object.__setattr__(shared, field.name, getattr(template, field.name))
        _SHARED[struct_type] = shared
    return shared


M = TypeVar("M", bound=Message)


def encode(message: Message, version: int) -> list[bytes | memoryview]:
    """Encode a message as consecutive parts; large payloads are not copied."""
    encoder = message.ENCODERS.get(version)
    if encoder is None:
        from moldau.protocol import compiler

        encoder = compiler.encoder(type(message), version)
    try:
        return encoder(message)
    except (binary.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        from moldau.protocol.diagnosis import explain

        raise EncodeError(explain(message, version, error)) from error


def encode_bytes(message: Message, version: int) -> bytes:
    return b"".join(encode(message, version))


def decode(cls: type[M], data: Buffer, version: int, offset: int = 0) -> M:
    """Decode a message that fills `data` from `offset` to its end; `DecodeError` otherwise."""
    message, end = decode_prefix(cls, data, version, offset)
    if end != len(data):
        raise DecodeError(f"{cls.__name__} v{version}: {len(data) - end} bytes left over")
    return message


def decode_prefix(cls: type[M], data: Buffer, version: int, offset: int = 0) -> tuple[M, int]:
    """Decode a message at `offset`; return it and the offset after it."""
    decoder = cls.DECODERS.get(version)
    if decoder is None:
        from moldau.protocol import compiler

        decoder = compiler.decoder(cls, version)
    try:
        return decoder(data, offset)
    except (binary.error, IndexError) as error:
        raise DecodeError(f"{cls.__name__} v{version}: the data ends too early") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"{cls.__name__} v{version}: a string is not UTF-8") from error


def records_view(records: Records | None) -> memoryview:
    """Return a records field as one memoryview; empty for null."""
    if records is None:
        return memoryview(b"")
    if isinstance(records, bytes | bytearray | memoryview):
        return memoryview(records)
    return memoryview(b"".join(records))
