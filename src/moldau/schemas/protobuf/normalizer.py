"""The normalized form of a file: declarations that mean the same become the same elements.

Fields, constants, ranges and options are sorted, type and option names are resolved to full names, options
set in several statements are merged, and maps are written as maps. Messages keep their order, which the wire
format uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from moldau.schemas.protobuf.elements import (
    KEY_TYPES,
    SCALARS,
    Enum,
    Extend,
    Extensions,
    Field,
    Group,
    Literal,
    Message,
    OneOf,
    Option,
    OptionValue,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
    Type,
    map_entry_types,
    map_types,
)
from moldau.schemas.protobuf.index import Scope, TypeIndex
from moldau.schemas.protobuf.numbers import normalized_number
from moldau.schemas.protobuf.options import accumulated, as_map, by_key
from moldau.schemas.protobuf.printer import default_value
from moldau.schemas.schema import InvalidSchema


def normalized(file: ProtoFile, index: TypeIndex) -> ProtoFile:
    """Return the normalized file; raise `InvalidSchema` if a type is not declared."""
    return _Normalizer(index).file(file)


class _Normalizer:
    def __init__(self, index: TypeIndex) -> None:
        self._index = index

    def file(self, file: ProtoFile) -> ProtoFile:
        scope = Scope(file.package or "")
        return replace(
            file,
            syntax=file.syntax if file.syntax == "proto3" else None,
            imports=tuple(sorted(set(file.imports))),
            public_imports=tuple(sorted(set(file.public_imports))),
            options=self._options(file.options, scope),
            types=self._types(file.types, scope),
            extends=self._extends(file.extends, scope),
            services=tuple(self._service(service, scope) for service in file.services),
        )

    def _types(self, types: tuple[Type, ...], scope: Scope) -> tuple[Type, ...]:
        return tuple(
            self._message(element, scope.inner(element.name))
            if isinstance(element, Message)
            else self._enum(element, scope.inner(element.name))
            for element in types
            if map_entry_types(element) is None
        )

    def _message(self, message: Message, scope: Scope) -> Message:
        oneofs = [self._oneof(oneof, scope) for oneof in message.oneofs if oneof.fields]
        return Message(
            name=message.name,
            fields=self._fields(message.fields, scope),
            oneofs=tuple(sorted(oneofs, key=lambda oneof: oneof.fields[0].number)),
            groups=self._groups(message.groups, scope),
            types=self._types(message.types, scope),
            options=self._options(message.options, scope),
            reserved=_sorted_reserved(message.reserved),
            extensions=self._extensions(message.extensions, scope),
            extends=self._extends(message.extends, scope),
        )

    def _fields(self, fields: Iterable[Field], scope: Scope) -> tuple[Field, ...]:
        return tuple(self._field(field, scope) for field in sorted(fields, key=attrgetter("number")))

    def _oneof(self, oneof: OneOf, scope: Scope) -> OneOf:
        options = self._options(oneof.options, scope)
        return OneOf(
            oneof.name, self._fields(oneof.fields, scope), self._groups(oneof.groups, scope), options
        )

    def _groups(self, groups: Iterable[Group], scope: Scope) -> tuple[Group, ...]:
        return tuple(
            replace(group, fields=self._fields(group.fields, scope))
            for group in sorted(groups, key=attrgetter("number"))
        )

    def _field(self, field: Field, scope: Scope) -> Field:
        type_name, is_map = self._field_type(field.type, scope)
        options = [*field.options]
        if field.default is not None:
            options.append(Option("default", default_value(field.type, field.default)))
        if field.json_name is not None:
            options.append(Option("json_name", field.json_name))
        return Field(
            label=None if is_map else field.label,
            type=type_name,
            name=field.name,
            number=field.number,
            options=self._options(options, scope),
        )

    def _field_type(self, type_name: str, scope: Scope) -> tuple[str, bool]:
        """Return the type with full names, and whether it is a map."""
        if type_name in SCALARS:
            return type_name, False
        types = map_types(type_name)
        if types is None:
            entry = self._index.type(type_name, scope)
            if entry is None:
                raise InvalidSchema(f"Could not resolve type: {type_name}")
            types = map_entry_types(entry.element)
            if types is None:
                return "." + entry.full_name, False
        key, value = types
        if key not in KEY_TYPES:
            raise InvalidSchema(f"map key must be non-byte, non-floating point scalar: {key}")
        value_entry = None if value in SCALARS else self._index.type(value, scope)
        return f"map<{key}, {value if value_entry is None else '.' + value_entry.full_name}>", True

    def _resolved(self, type_name: str, scope: Scope) -> str:
        entry = self._index.type(type_name, scope)
        if entry is None:
            raise InvalidSchema(f"Could not resolve type: {type_name}")
        return "." + entry.full_name

    def _extends(self, extends: Iterable[Extend], scope: Scope) -> tuple[Extend, ...]:
        fields: dict[str, list[Field]] = {}
        for extend in extends:
            if extend.fields:
                fields.setdefault(self._resolved(extend.name, scope), []).extend(extend.fields)
        return tuple(Extend(name, self._fields(added, scope)) for name, added in fields.items())

    def _extensions(self, extensions: Iterable[Extensions], scope: Scope) -> tuple[Extensions, ...]:
        single = [
            Extensions((_single(value),), self._options(declared.options, scope))
            for declared in extensions
            for value in declared.values
        ]
        return tuple(sorted(single, key=lambda declared: _first(declared.values[0])))

    def _enum(self, enum: Enum, scope: Scope) -> Enum:
        constants = sorted(enum.constants, key=attrgetter("number", "name"))
        return Enum(
            name=enum.name,
            constants=tuple(
                replace(constant, options=self._options(constant.options, scope)) for constant in constants
            ),
            options=self._options(enum.options, scope),
            reserved=_sorted_reserved(enum.reserved),
        )

    def _service(self, service: Service, scope: Scope) -> Service:
        rpcs = tuple(self._rpc(rpc, scope) for rpc in service.rpcs)
        return Service(service.name, rpcs, self._options(service.options, scope))

    def _rpc(self, rpc: Rpc, scope: Scope) -> Rpc:
        return replace(
            rpc,
            request=self._resolved(rpc.request, scope),
            response=self._resolved(rpc.response, scope),
            options=self._options(rpc.options, scope),
        )

    def _options(self, options: Iterable[Option], scope: Scope) -> tuple[Option, ...]:
        resolved = sorted((self._option(option, scope) for option in options), key=attrgetter("name"))
        result: list[Option] = []
        for name, occurrences in groupby(resolved, key=attrgetter("name")):
            extension = self._index.extension("." + name, scope)
            if extension is not None and extension[1].label != "repeated":
                result.append(self._merged(extension[1], [as_map(option) for option in occurrences], scope))
            else:
                result += occurrences
        return tuple(option._replace(value=self._value(option.value, scope)) for option in result)

    def _option(self, option: Option, scope: Scope) -> Option:
        extension = self._index.extension(option.name, scope) if option.is_custom else None
        return as_map(option._replace(name=extension[0])) if extension is not None else option

    def _merged(self, field: Field, options: list[Option], scope: Scope) -> Option:
        maps = _last_maps([option.value for option in options])
        if len(maps) == 1:
            return options[-1]
        return options[-1]._replace(value=self._merged_maps(field, maps, scope))

    def _merged_maps(
        self, field: Field | None, maps: list[OptionValue], scope: Scope
    ) -> dict[str, OptionValue]:
        message = self._message_of(field, scope)
        result: dict[str, OptionValue] = {}
        for name, values in by_key(maps).items():
            declared = _field_named(message, name) if message is not None else None
            result[name] = values[0] if len(values) == 1 else self._merged_values(declared, values, scope)
        return result

    def _merged_values(self, field: Field | None, values: list[OptionValue], scope: Scope) -> OptionValue:
        if field is None or field.label == "repeated":
            return accumulated(values)
        maps = _last_maps(values)
        if len(maps) > 1 and self._message_of(field, scope) is not None:
            return self._merged_maps(field, maps, scope)
        return values[-1]

    def _message_of(self, field: Field | None, scope: Scope) -> Message | None:
        entry = self._index.type(field.type, scope) if field is not None else None
        return entry.element if entry is not None and isinstance(entry.element, Message) else None

    def _value(self, value: OptionValue, scope: Scope) -> OptionValue:
        if isinstance(value, Literal):
            return Literal(normalized_number(value.text), is_number=True) if value.is_number else value
        if isinstance(value, Option):
            return value._replace(value=self._value(value.value, scope))
        if isinstance(value, list):
            return [self._nested_value(item, scope) for item in value]
        return self._map(value, scope) if isinstance(value, dict) else value

    def _nested_value(self, value: OptionValue, scope: Scope) -> OptionValue:
        """Normalize a value in a list or map, where a list of one element is that element."""
        while isinstance(value, list) and len(value) == 1:
            value = value[0]
        return self._value(value, scope)

    def _map(self, values: dict[str, OptionValue], scope: Scope) -> dict[str, OptionValue]:
        result: dict[str, OptionValue] = {}
        for name, value in values.items():
            if value != []:
                result.setdefault(self._map_key(name, scope), self._nested_value(value, scope))
        return dict(sorted(result.items()))

    def _map_key(self, name: str, scope: Scope) -> str:
        extension = self._index.extension(name[1:-1], scope) if name.startswith("[") else None
        return f"[{extension[0]}]" if extension is not None else name


def _last_maps(values: list[OptionValue]) -> list[OptionValue]:
    """Return the maps at the end, which are merged; a value that is not a map replaces those before it."""
    first = len(values) - 1
    while first > 0 and isinstance(values[first], dict) and isinstance(values[first - 1], dict):
        first -= 1
    return values[first:]


def _field_named(message: Message, name: str) -> Field | None:
    fields = (*message.fields, *(field for oneof in message.oneofs for field in oneof.fields))
    return next((field for field in fields if field.name == name), None)


def _single(value: int | Range) -> int | Range:
    return value.first if isinstance(value, Range) and value.first == value.last else value


def _first(value: int | Range | str) -> int:
    if isinstance(value, str):
        return (1 << 31) - 1
    return value.first if isinstance(value, Range) else value


def _sorted_reserved(reserved: Iterable[Reserved]) -> tuple[Reserved, ...]:
    values = (value for declared in reserved for value in declared)
    ordered = sorted(values, key=lambda value: (_first(value), _reserved_text(value)))
    return tuple((value if isinstance(value, str) else _single(value),) for value in ordered)


def _reserved_text(value: int | Range | str) -> str:
    return f"{value.first}..{value.last}" if isinstance(value, Range) else str(value)
