"""Protobuf messages by a schema text: message classes are made from it at run time.

A message type is named by its path in the file, as in the frame of a record: `(1, 0)` is the first message
inside the second one.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, EncodeError, Message

from moldau.client.serdes import SerializationError
from moldau.schemas.schema import InvalidSchema, parse

_MAIN = "schema.proto"
#: Imports that every registry knows, so they are not references.
KNOWN_IMPORTS = ("google/protobuf/", "google/type/", "confluent/")


def is_known(name: str) -> bool:
    return name.startswith(KNOWN_IMPORTS)


def file_descriptor(
    name: str, text: str, references: Mapping[str, str]
) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a file, given as its source text or as a serialized descriptor in base64."""
    try:
        serialized = parse("PROTOBUF", text, references).formatted("serialized")
        proto = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))
    except (InvalidSchema, DecodeError, ValueError) as error:
        raise SerializationError(f"invalid Protobuf schema {name}: {error}") from error
    proto.name = name
    return proto


def serialized_text(file: Any) -> str:
    """Return the schema text of a generated class's file: its serialized descriptor in base64."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return base64.b64encode(proto.SerializeToString()).decode()


def indexes_of(descriptor: Any) -> tuple[int, ...]:
    """Return the path of a message type in its file."""
    proto = descriptor_pb2.FileDescriptorProto()
    descriptor.file.CopyToProto(proto)
    names: list[str] = []
    while descriptor is not None:
        names.append(descriptor.name)
        descriptor = descriptor.containing_type
    path: list[int] = []
    level: Any = proto.message_type
    for name in reversed(names):
        path.append(next(index for index, one in enumerate(level) if one.name == name))
        level = level[path[-1]].nested_type
    return tuple(path)


class ProtobufCodec:
    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        references = references or {}
        pool = descriptor_pool.DescriptorPool()
        earlier: dict[str, str] = {}
        for name, referenced in references.items():
            _add(pool, file_descriptor(name, referenced, earlier))
            earlier[name] = referenced
        main = file_descriptor(_MAIN, text, references)
        _add(pool, main)
        self.file: Any = pool.FindFileByName(_MAIN)
        self._order = [message.name for message in main.message_type]
        self._classes: dict[tuple[int, ...], type[Message]] = {}

    @property
    def name(self) -> str | None:
        """The full name of the first message."""
        return self.descriptor((0,)).full_name if self._order else None

    def descriptor(self, indexes: tuple[int, ...]) -> Any:
        """Return the message type at a path."""
        if min(indexes) < 0:
            raise SerializationError(f"the schema has no message at {list(indexes)}")
        try:
            found = self.file.message_types_by_name[self._order[indexes[0]]]
            for index in indexes[1:]:
                found = found.nested_types[index]
        except IndexError as error:
            raise SerializationError(f"the schema has no message at {list(indexes)}") from error
        return found

    def indexes_by_name(self, name: str) -> tuple[int, ...]:
        """Return the path of a message type by its name or full name."""
        full_name = name
        if self.file.package and not name.startswith(f"{self.file.package}."):
            full_name = f"{self.file.package}.{name}"
        try:
            return indexes_of(self.file.pool.FindMessageTypeByName(full_name))
        except KeyError as error:
            raise SerializationError(f"the schema has no message {name}") from error

    def message_class(self, indexes: tuple[int, ...] = (0,)) -> type[Message]:
        if indexes not in self._classes:
            self._classes[indexes] = message_factory.GetMessageClass(self.descriptor(indexes))
        return self._classes[indexes]

    def decode(self, data: bytes, indexes: tuple[int, ...] = (0,)) -> Message:
        return parsed(self.message_class(indexes), data)


def parsed(message_class: type[Message], data: bytes) -> Message:
    message = message_class()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise SerializationError(f"not a {message.DESCRIPTOR.full_name} of Protobuf: {error}") from error
    return message


def encoded(message: Message) -> bytes:
    try:
        return message.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise SerializationError(f"not a complete Protobuf message: {error}") from error


def _add(pool: Any, proto: descriptor_pb2.FileDescriptorProto) -> None:
    """Add a file and those of its imports that are known everywhere."""
    for name in proto.dependency:
        if is_known(name):
            _add_known(pool, name)
    try:
        pool.Add(proto)
    except TypeError as error:
        raise SerializationError(f"invalid Protobuf schema {proto.name}: {error}") from error


def _add_known(pool: Any, name: str) -> None:
    try:
        pool.FindFileByName(name)
        return
    except KeyError:
        pass
    if name.startswith("google/protobuf/"):
        module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
        proto = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(proto)
        _add(pool, proto)
