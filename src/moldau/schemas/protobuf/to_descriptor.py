"""`FileDescriptorProto` of a file, as Confluent's registry builds it for `format=serialized` and for linking.

Type names stay as written; the descriptor pool resolves them. Of the custom options only those of
`confluent/meta.proto` are set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.schemas.protobuf.descriptor_classes import KNOWN_OPTIONS, file_class, meta_extension
from moldau.schemas.protobuf.elements import (
    SCALARS,
    Enum,
    Extend,
    Extensions,
    Field,
    Group,
    Literal,
    Message,
    Option,
    OptionValue,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
    Type,
    map_types,
)
from moldau.schemas.protobuf.index import Scope, TypeIndex
from moldau.schemas.protobuf.options import as_map, merged
from moldau.schemas.schema import InvalidSchema


def descriptor_of(file: ProtoFile, name: str, index: TypeIndex, known_imports: Iterable[str]) -> Any:
    """Return the descriptor of a file; imports that are not known are left out."""
    return _Builder(file, index).file(name, frozenset(known_imports))


def map_entry_name(field_name: str) -> str:
    """Return the name of the message that stands for the entries of a map."""
    if "_" in field_name:
        field_name = "".join(part.capitalize() for part in field_name.split("_"))
    return field_name + "Entry"


class _Builder:
    def __init__(self, file: ProtoFile, index: TypeIndex) -> None:
        self._file = file
        self._index = index
        self._kinds = (
            file_class()().message_type.add().field.add().DESCRIPTOR.enum_types_by_name["Type"].values_by_name
        )
        self._labels = (
            file_class()()
            .message_type.add()
            .field.add()
            .DESCRIPTOR.enum_types_by_name["Label"]
            .values_by_name
        )

    def file(self, name: str, known_imports: frozenset[str]) -> Any:
        file = self._file
        target = file_class()(name=name)
        if file.package is not None:
            target.package = file.package
        if file.syntax is not None:
            target.syntax = file.syntax
        elif file.edition is not None:
            self._set_edition(target, file.edition)
        scope = Scope(file.package or "")
        self._add_types(target.message_type, target.enum_type, file.types, scope)
        for service in file.services:
            self._service(target.service.add(), service)
        self._add_extensions(target.extension, file.extends, scope)
        self._add_imports(target, known_imports)
        _set_options(target, file.options)
        return target

    @staticmethod
    def _set_edition(target: Any, edition: str) -> None:
        values = target.DESCRIPTOR.fields_by_name["edition"].enum_type.values_by_name
        if f"EDITION_{edition}" not in values:
            raise InvalidSchema(f"Invalid protobuf schema definition: unknown edition {edition}")
        target.syntax = "editions"
        target.edition = values[f"EDITION_{edition}"].number

    def _add_imports(self, target: Any, known_imports: frozenset[str]) -> None:
        paths = [*self._file.imports, *self._file.public_imports]
        target.dependency.extend(dict.fromkeys(path for path in paths if path in known_imports))
        for path in dict.fromkeys(self._file.public_imports):
            if path in known_imports:
                target.public_dependency.append(list(target.dependency).index(path))

    def _add_types(self, messages: Any, enums: Any, types: Iterable[Type], scope: Scope) -> None:
        for element in types:
            if isinstance(element, Message):
                self._message(messages.add(), element, scope.inner(element.name))
            else:
                self._enum(enums.add(), element)

    def _message(self, target: Any, message: Message, scope: Scope) -> None:
        target.name = message.name
        self._add_types(target.nested_type, target.enum_type, message.types, scope)
        for oneof in message.oneofs:
            declared = target.oneof_decl.add(name=oneof.name)
            declared.options.SetInParent()
            _set_options(declared, oneof.options)
            index = len(target.oneof_decl) - 1
            for field in oneof.fields:
                self._field(target.field.add(oneof_index=index), field, "optional", scope)
            for group in oneof.groups:
                self._group(target, target.field.add(oneof_index=index), group, scope)
        for field in message.fields:
            self._message_field(target, field, scope)
        for group in message.groups:
            self._group(target, target.field.add(), group, scope)
        self._add_reserved(target, message.reserved, last_offset=1)
        for extensions in message.extensions:
            self._add_extension_ranges(target, extensions)
        self._add_extensions(target.extension, message.extends, scope)
        _set_options(target, message.options)

    def _message_field(self, target: Any, field: Field, scope: Scope) -> None:
        types = map_types(field.type)
        if types is not None:
            entry = target.nested_type.add(name=map_entry_name(field.name))
            entry.options.map_entry = True
            for number, (name, type_name) in enumerate(zip(("key", "value"), types, strict=True), start=1):
                self._set_type(entry.field.add(name=name, number=number), type_name, scope)
            self._field(target.field.add(), field, "repeated", scope, entry.name)
        elif field.label == "optional" and self._file.syntax == "proto3":
            target.oneof_decl.add(name=f"_{field.name}").options.SetInParent()
            added = target.field.add(proto3_optional=True, oneof_index=len(target.oneof_decl) - 1)
            self._field(added, field, "optional", scope)
        else:
            self._field(target.field.add(), field, field.label, scope)

    def _field(self, target: Any, field: Field, label: str | None, scope: Scope, entry: str = "") -> None:
        target.name = field.name
        target.number = field.number
        if label is not None:
            target.label = self._labels[f"LABEL_{label.upper()}"].number
        if entry:
            # Without a type, as in Confluent's registry; the name of the entry tells it.
            target.type_name = entry
        else:
            self._set_type(target, field.type, scope)
        if field.default is not None:
            target.default_value = field.default
        if field.json_name is not None:
            target.json_name = field.json_name
        _set_options(target, field.options)

    def _set_type(self, target: Any, type_name: str, scope: Scope) -> None:
        if type_name in SCALARS:
            target.type = self._kinds[f"TYPE_{type_name.upper()}"].number
            return
        entry = self._index.type(type_name, scope)
        if entry is not None:
            kind = "TYPE_ENUM" if isinstance(entry.element, Enum) else "TYPE_MESSAGE"
            target.type = self._kinds[kind].number
        target.type_name = type_name

    def _group(self, message: Any, target: Any, group: Group, scope: Scope) -> None:
        nested = message.nested_type.add(name=group.name)
        inner = scope.inner(group.name)
        for field in group.fields:
            self._message_field(nested, field, inner)
        target.name = group.name.lower()
        target.number = group.number
        target.type = self._kinds["TYPE_GROUP"].number
        target.type_name = group.name
        target.label = self._labels[f"LABEL_{(group.label or 'optional').upper()}"].number

    def _add_extensions(self, target: Any, extends: Iterable[Extend], scope: Scope) -> None:
        for extend in extends:
            for field in extend.fields:
                self._field(target.add(extendee=extend.name), field, field.label, scope)

    @staticmethod
    def _add_reserved(target: Any, reserved: Iterable[Reserved], last_offset: int) -> None:
        for values in reserved:
            for value in values:
                if isinstance(value, str):
                    target.reserved_name.append(value)
                else:
                    first, last = value if isinstance(value, Range) else (value, value)
                    target.reserved_range.add(start=first, end=_int32(last + last_offset))

    @staticmethod
    def _add_extension_ranges(target: Any, extensions: Extensions) -> None:
        for value in extensions.values:
            first, last = value if isinstance(value, Range) else (value, value)
            added = target.extension_range.add(start=first, end=_int32(last + 1))
            added.options.SetInParent()
            _set_options(added, extensions.options)

    def _enum(self, target: Any, enum: Enum) -> None:
        target.name = enum.name
        self._add_reserved(target, enum.reserved, last_offset=0)
        for constant in enum.constants:
            _set_options(target.value.add(name=constant.name, number=constant.number), constant.options)
        _set_options(target, enum.options)

    @staticmethod
    def _service(target: Any, service: Service) -> None:
        target.name = service.name
        for rpc in service.rpcs:
            _set_method(target.method.add(), rpc)
        _set_options(target, service.options)


def _set_method(target: Any, rpc: Rpc) -> None:
    target.name = rpc.name
    target.input_type = rpc.request
    target.output_type = rpc.response
    target.client_streaming = rpc.request_streaming
    target.server_streaming = rpc.response_streaming
    _set_options(target, rpc.options)


def _int32(number: int) -> int:
    return min(number, (1 << 31) - 1)


def _set_options(declaration: Any, options: tuple[Option, ...]) -> None:
    for name, option in merged(option for option in options if option.is_custom).items():
        extension = meta_extension(name)
        extendee = declaration.options.DESCRIPTOR.full_name
        if extension is not None and extension.containing_type.full_name == extendee:
            _set_message(declaration.options.Extensions[extension], option.value)
    for option in options:
        if not option.is_custom:
            _set_standard_option(declaration.options, option.name, as_map(option).value)


def _set_standard_option(options: Any, name: str, value: OptionValue) -> None:
    name, _, rest = name.partition(".")
    if name in KNOWN_OPTIONS[options.DESCRIPTOR.name]:
        _set_field(options, options.DESCRIPTOR.fields_by_name[name], {rest: value} if rest else value)


def _set_message(message: Any, value: OptionValue) -> None:
    if not isinstance(value, dict):
        kind = message.DESCRIPTOR.name
        raise InvalidSchema(f"Invalid protobuf schema definition: an option of type {kind} is not a message")
    message.SetInParent()
    for name, item in value.items():
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is not None:
            _set_field(message, field, item)


def _set_field(message: Any, field: Any, value: OptionValue) -> None:
    if field.is_repeated:
        for item in value if isinstance(value, list) else [value]:
            if field.message_type is not None:
                _set_message(getattr(message, field.name).add(), item)
            else:
                getattr(message, field.name).append(_scalar(field, item))
    elif field.message_type is not None:
        _set_message(getattr(message, field.name), value)
    else:
        setattr(message, field.name, _scalar(field, value))


def _scalar(field: Any, value: OptionValue) -> Any:
    text = value.text if isinstance(value, Literal) else value if isinstance(value, str) else None
    try:
        if text is not None and field.enum_type is not None:
            return _constant(field.enum_type, text)
        if text is not None and field.cpp_type == field.CPPTYPE_BOOL:
            return text == "true"
        if text is not None and field.cpp_type == field.CPPTYPE_STRING:
            return text
        if text is not None:
            return int(text, 0)
    except (KeyError, ValueError):
        pass
    raise InvalidSchema(f"Invalid protobuf schema definition: invalid value of option {field.name}")


def _constant(enum: Any, text: str) -> int:
    if enum.full_name == "google.protobuf.Edition" and text not in enum.values_by_name:
        # Older files have strings instead of constants; an edition of the future is unknown.
        edition = enum.values_by_name.get(f"EDITION_{text}")
        return edition.number if edition is not None else 0
    number: int = enum.values_by_name[text].number
    return number
