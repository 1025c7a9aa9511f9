"""Elements of a `FileDescriptorProto`: schemas registered in serialized form, and files of `google/protobuf`.

Options are listed in the order in which Confluent's registry prints them. Custom options other than those of
`confluent/meta.proto` are unknown fields here and dropped, as are groups in the form of groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.schemas.protobuf.descriptor_classes import KNOWN_OPTIONS, file_class
from moldau.schemas.protobuf.elements import (
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Literal,
    Message,
    OneOf,
    Option,
    OptionValue,
    ProtoFile,
    Range,
    Rpc,
    Service,
)
from moldau.schemas.schema import InvalidSchema

#: Parameters whose value is printed before the key.
_VALUE_FIRST = ("precision", "scale")
_EDITIONS = "EDITION_"


def file_of(serialized: bytes) -> ProtoFile:
    """Return the elements of a serialized descriptor; raise `InvalidSchema` if it is not one."""
    from google.protobuf.message import DecodeError

    try:
        file = file_class().FromString(serialized)
    except DecodeError as error:
        raise InvalidSchema(f"Could not parse Protobuf - {error}") from None
    return _Converter(file).file()


class _Converter:
    def __init__(self, file: Any) -> None:
        self._file = file
        self._has_labels = file.syntax in ("", "proto2")

    def file(self) -> ProtoFile:
        file = self._file
        imports: dict[str, list[str]] = {"": [], "public": [], "weak": []}
        for index, path in enumerate(file.dependency):
            kind = (
                "public"
                if index in file.public_dependency
                else "weak"
                if index in file.weak_dependency
                else ""
            )
            imports[kind].append(path)
        return ProtoFile(
            syntax=file.syntax if file.syntax in ("proto2", "proto3") else None,
            edition=_enum_name(file, "edition").removeprefix(_EDITIONS)
            if file.syntax == "editions"
            else None,
            package=file.package or None,
            imports=tuple(imports[""]),
            public_imports=tuple(imports["public"]),
            weak_imports=tuple(imports["weak"]),
            types=(*map(self._message, file.message_type), *map(self._enum, file.enum_type)),
            services=tuple(map(self._service, file.service)),
            extends=self._extends(file.extension),
            options=_options(file),
        )

    def _message(self, message: Any) -> Message:
        oneofs: list[list[Field]] = [[] for _ in message.oneof_decl]
        fields = []
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                if field.oneof_index >= len(oneofs):
                    raise InvalidSchema(f"Could not parse Protobuf - {field.name} is in an undeclared oneof")
                oneofs[field.oneof_index].append(self._field(field, label=None))
            else:
                fields.append(self._field(field, self._label(field)))
        return Message(
            name=message.name,
            fields=tuple(fields),
            oneofs=tuple(
                OneOf(declared.name, tuple(members), options=_options(declared))
                for declared, members in zip(message.oneof_decl, oneofs, strict=True)
                if members
            ),
            types=(*map(self._message, message.nested_type), *map(self._enum, message.enum_type)),
            options=_options(message),
            reserved=(
                *((_range(item.start, item.end - 1),) for item in message.reserved_range),
                *((name,) for name in message.reserved_name),
            ),
            extensions=tuple(
                Extensions((_range(item.start, item.end - 1),), _options(item))
                for item in message.extension_range
            ),
            extends=self._extends(message.extension),
        )

    def _label(self, field: Any) -> str | None:
        if field.proto3_optional:
            return "optional"
        label = _enum_name(field, "label").removeprefix("LABEL_").lower()
        return label if self._has_labels or label == "repeated" else None

    def _field(self, field: Any, label: str | None) -> Field:
        return Field(
            label=label,
            type=field.type_name or _enum_name(field, "type").removeprefix("TYPE_").lower(),
            name=field.name,
            number=field.number,
            options=_options(field),
            default=field.default_value if field.HasField("default_value") and self._has_labels else None,
            json_name=field.json_name if field.HasField("json_name") else None,
        )

    def _extends(self, extensions: Any) -> tuple[Extend, ...]:
        fields: dict[str, list[Field]] = {}
        for field in extensions:
            fields.setdefault(field.extendee, []).append(self._field(field, self._label(field)))
        return tuple(Extend(extendee, tuple(added)) for extendee, added in fields.items())

    @staticmethod
    def _enum(enum: Any) -> Enum:
        return Enum(
            name=enum.name,
            constants=tuple(Constant(value.name, value.number, _options(value)) for value in enum.value),
            options=_options(enum),
            reserved=(
                *((_range(item.start, item.end),) for item in enum.reserved_range),
                *((name,) for name in enum.reserved_name),
            ),
        )

    @staticmethod
    def _service(service: Any) -> Service:
        return Service(
            service.name,
            tuple(
                Rpc(
                    method.name,
                    method.input_type,
                    method.output_type,
                    method.client_streaming,
                    method.server_streaming,
                    _options(method),
                )
                for method in service.method
            ),
            _options(service),
        )


def _range(first: int, last: int) -> int | Range:
    return first if first == last else Range(first, last)


def _enum_name(message: Any, field: str) -> str:
    value = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number.get(getattr(message, field))
    return value.name if value is not None else ""


def _options(declaration: Any) -> tuple[Option, ...]:
    options = declaration.options
    present = {
        field.full_name if field.is_extension else field.name: (field, value)
        for field, value in options.ListFields()
    }
    return (*_standard_options(options.DESCRIPTOR.name, present), *_meta_option(present))


def _standard_options(kind: str, present: dict[str, tuple[Any, Any]]) -> Iterator[Option]:
    for name in KNOWN_OPTIONS[kind]:
        if name in present:
            field, value = present[name]
            for item in value if field.is_repeated else (value,):
                yield Option(name, _value(field, item))


def _meta_option(present: dict[str, tuple[Any, Any]]) -> Iterator[Option]:
    for name, (field, value) in present.items():
        if field.is_extension:
            meta = _message_value(value)
            for param in value.params:
                if param.key in _VALUE_FIRST:
                    meta["params"] = [_param(entry) for entry in value.params]
            if meta:
                yield Option(name, meta, is_custom=True)


def _param(entry: Any) -> dict[str, OptionValue]:
    param: dict[str, OptionValue] = {"key": entry.key, "value": entry.value}
    return dict(reversed(param.items())) if entry.key in _VALUE_FIRST else param


def _message_value(message: Any) -> dict[str, OptionValue]:
    return {
        field.name: [_value(field, item) for item in value] if field.is_repeated else _value(field, value)
        for field, value in message.ListFields()
    }


def _value(field: Any, value: Any) -> OptionValue:
    if field.message_type is not None:
        return _message_value(value)
    if field.enum_type is not None:
        constant = field.enum_type.values_by_number.get(value)
        return Literal(constant.name if constant is not None else str(value))
    if isinstance(value, bool):
        return Literal("true" if value else "false")
    return value if isinstance(value, str) else Literal(str(value), is_number=True)
