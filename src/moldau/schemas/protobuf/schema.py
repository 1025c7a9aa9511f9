"""A Protobuf schema of the registry, and its entry point `parse`.

Parsing is syntax only, as in Confluent's registry: a new schema is checked with `validate`, and linked to a
descriptor pool when its messages are used.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from moldau.schemas.protobuf import builtin
from moldau.schemas.protobuf.compatibility import Difference, differences
from moldau.schemas.protobuf.elements import Message, ProtoFile, map_entry_types, messages
from moldau.schemas.protobuf.index import TypeIndex
from moldau.schemas.protobuf.normalizer import normalized
from moldau.schemas.protobuf.parser import parse_file
from moldau.schemas.protobuf.printer import print_file
from moldau.schemas.protobuf.tags import Tags, tagged_entities, with_tags
from moldau.schemas.schema import Incompatible, InvalidSchema, ParsedSchema, SchemaType


def parse(text: str, references: Mapping[str, str] = {}) -> ProtobufSchema:
    """Parse the text of a .proto file, or the Base64 form of its `FileDescriptorProto`.

    `references` maps import paths to texts.
    """
    return ProtobufSchema(_file(text), {name: _file(reference) for name, reference in references.items()})


def _file(text: str) -> ProtoFile:
    try:
        return parse_file(text)
    except InvalidSchema:
        # A descriptor in Base64 is no valid text; the error to report is that of the text.
        serialized = _base64(text)
        if not serialized:
            raise
        from moldau.schemas.protobuf.from_descriptor import file_of

        try:
            return file_of(serialized)
        except InvalidSchema:
            pass
        raise


def _base64(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return None


class ProtobufSchema:
    """A parsed .proto file with the files it may import."""

    schema_type = SchemaType.PROTOBUF

    def __init__(self, file: ProtoFile, references: Mapping[str, ProtoFile], text: str | None = None) -> None:
        self._file = file
        self._references = references
        self._text = text

    @cached_property
    def canonical(self) -> str:
        return print_file(self._file) if self._text is None else self._text

    @cached_property
    def _index(self) -> TypeIndex:
        return TypeIndex(self._file, self._references)

    @cached_property
    def _named_file(self) -> ProtoFile:
        """The file whose messages the schema stands for: the imported file of a sole public import."""
        file = self._file
        if file.types or file.imports or file.services or file.extends or len(file.public_imports) != 1:
            return file
        path = file.public_imports[0]
        imported = self._references.get(path)
        if imported is None and path in builtin.PATHS:
            imported = builtin.file(path)
        return imported if imported is not None and imported.types else file

    @property
    def name(self) -> str | None:
        """The full name of the first message or, without messages, of the first enum."""
        file = self._named_file
        declared = [*messages(file.types), *file.types]
        if not declared:
            return None
        return f"{file.package}.{declared[0].name}" if file.package else declared[0].name

    def normalized(self) -> ProtobufSchema:
        text = print_file(normalized(self._file, self._index))
        return ProtobufSchema(parse_file(text), self._references, text)

    def formatted(self, format: str) -> str:
        """Return the text as `ignore_extensions` or `serialized`; other formats are the canonical text."""
        match format:
            case "ignore_extensions":
                return print_file(self._file, ignore_extensions=True)
            case "serialized":
                from moldau.schemas.protobuf.linker import descriptor, link

                link(self._file, self._references)
                serialized = descriptor(self._file, self._references).SerializeToString(deterministic=True)
                return b64encode(serialized).decode()
        return self.canonical

    def validate(self, strict: bool) -> None:
        """Check that types are declared and, if strict, that the schema can be linked."""
        self.normalized()
        if strict:
            self.descriptor_pool  # noqa: B018 - linking is the check

    @cached_property
    def descriptor_pool(self) -> Any:
        """The `DescriptorPool` with this schema and its imports; `InvalidSchema` if it cannot be linked."""
        from moldau.schemas.protobuf.linker import link

        return link(self._file, self._references)

    def message_class(self, full_name: str) -> Any:
        """Return the class of a message, for data in binary form and as JSON."""
        from google.protobuf.message_factory import GetMessageClass

        try:
            descriptor = self.descriptor_pool.FindMessageTypeByName(full_name)
        except KeyError:
            raise InvalidSchema(f"No message {full_name} in the schema") from None
        return GetMessageClass(descriptor)

    def message_indexes(self, full_name: str) -> tuple[int, ...]:
        """Return the position of a message for the wire format: at the top level, then in each message."""
        file = self._named_file
        indexes = []
        types = file.types
        for part in full_name.removeprefix(f"{file.package}." if file.package else "").split("."):
            names = [message.name for message in messages(types)]
            if part not in names:
                raise InvalidSchema(f"No message {full_name} in the schema")
            indexes.append(names.index(part))
            types = messages(types)[indexes[-1]].types
        return tuple(indexes)

    def message_name(self, indexes: Sequence[int]) -> str:
        """Return the full name of the message at a position; without indexes it is the first message."""
        file = self._named_file
        names = [file.package] if file.package else []
        types = file.types
        for index in indexes or (0,):
            declared = messages(types)
            if not 0 <= index < len(declared):
                raise InvalidSchema(f"Invalid message indexes: {list(indexes)}")
            names.append(declared[index].name)
            types = declared[index].types
        return ".".join(names)

    def has_top_level_field(self, name: str) -> bool:
        """Return whether any message at the top level has a field of this name (`confluent:reserved`)."""
        return any(name in _field_names(message) for message in messages(self._named_file.types))

    def tags(self) -> list[tuple[str, str, list[str]]]:
        """Return kind, path and tags of the messages and fields that have tags."""
        return list(tagged_entities(self._file))

    def with_tags(self, added: Tags, removed: Tags) -> str:
        """Return the text with other tags; raise `InvalidSchema` for an unknown message or field."""
        return print_file(with_tags(self._file, added, removed))

    def differences(self, previous: ProtobufSchema) -> list[Difference]:
        """Return all differences from an older schema, compatible ones included."""
        return differences(previous._file, previous._index, self._file, self._index)

    def incompatibilities(self, previous: ParsedSchema, *, lenient: bool = False) -> list[Incompatible]:
        if not isinstance(previous, ProtobufSchema):
            return [Incompatible("TYPE_MISMATCH", "#/", "Incompatible because of different schema type")]
        return [
            Incompatible(found.kind, found.path, found.message)
            for found in self.differences(previous)
            if not found.is_compatible
        ]


def _field_names(message: Message) -> set[str]:
    if map_entry_types(message) is not None:
        return set()
    fields = (*message.fields, *(field for oneof in message.oneofs for field in oneof.fields))
    return {field.name for field in fields}
