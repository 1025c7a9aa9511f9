"""Protobuf files of Connect schemas, as Confluent's converter makes them.

The first message is that of the schema; messages of its fields are declared inside it. A primitive value has
the wrapper of `google/protobuf/wrappers.proto`.
"""

from __future__ import annotations

from moldau.pipelines.connect.converters.registry.names import is_valid, parameters_of, scrubbed, split
from moldau.pipelines.connect.converters.registry.protobuf import options as names
from moldau.pipelines.connect.converters.registry.protobuf.options import SCALARS, Options
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.schemas.protobuf import builtin
from moldau.schemas.protobuf.parser import parse_file
from moldau.schemas.protobuf.printer import print_file
from moldau.schemas.schema import InvalidSchema


def schema_text(schema: Schema, options: Options) -> tuple[str, str]:
    """Return the text of the file, and the full name of the message of the schema."""
    if schema.type.is_primitive:
        return print_file(builtin.file(names.WRAPPERS)), names.wrapper_of(schema)
    if schema.type is not Type.STRUCT:
        raise DataError(f"Unsupported root schema of type {schema.type}: Protobuf needs a struct")
    return _Writer(options).file(schema)


class _Writer:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._imports: dict[str, None] = {}
        self._unnamed = 0

    def file(self, schema: Schema) -> tuple[str, str]:
        package, name = split(self._name_or_default(schema.name), self._options.scrub)
        message = self._message(name, schema)
        lines = ['syntax = "proto3";', *([f"package {package};"] if package else ())]
        lines += [f'import "{path}";' for path in sorted(self._imports)]
        try:
            text = print_file(parse_file("\n".join([*lines, message])))
        except InvalidSchema as error:
            raise DataError(f"The schema cannot be written as Protobuf: {error}") from error
        return text, f"{package}.{name}" if package else name

    def _name_or_default(self, name: str | None) -> str:
        if name:
            return name
        self._unnamed += 1
        return f"{names.DEFAULT_NAME}{self._unnamed}"

    def _short_name(self, name: str | None) -> str:
        short = self._name_or_default(name).rpartition(".")[2]
        return self._scrubbed(short)

    def _scrubbed(self, name: str) -> str:
        if not self._options.scrub:
            if not is_valid(name):
                raise DataError(f"{name} is no name of Protobuf: rename it, or set scrub.invalid.names=true.")
            return name
        # Protobuf's names begin with a letter.
        return f"x{scrubbed(name)}" if name.startswith("_") else scrubbed(name)

    def _message(self, name: str, schema: Schema) -> str:
        nested: dict[str, str] = {}
        tags = _Tags(schema)
        parts = []
        for each in schema.fields:
            if names.is_union(each.schema):
                parts.append(self._union(each.schema, nested, tags))
            else:
                field_name = self._scrubbed(each.name)
                parts.append(self._field(field_name, each.schema, tags.of(each.schema), nested))
        return f"message {name} {{ {' '.join([*parts, *nested.values()])} }}"

    def _union(self, schema: Schema, nested: dict[str, str], tags: _Tags) -> str:
        name = self._short_name((schema.name or "").removeprefix(names.UNION).removeprefix("."))
        members = [
            self._field(self._scrubbed(each.name), each.schema, tags.of(each.schema), nested, member=True)
            for each in schema.fields
        ]
        return f"oneof {name} {{ {' '.join(members)} }}"

    def _field(
        self, name: str, schema: Schema, tag: int, nested: dict[str, str], *, member: bool = False
    ) -> str:
        label = ""
        if schema.type is Type.ARRAY:
            label = "repeated "
            schema = _present(schema.value_schema)
            if schema.type is Type.ARRAY:
                raise DataError(f"Array cannot be nested: {name}")
        elif schema.type is Type.MAP:
            label = "repeated "
        elif self._options.optional_for_nullables and schema.optional and not member:
            label = "optional "
        type_name = self._type(name, schema, nested, member)
        return f"{label}{type_name} {name} = {tag}{self._parameters(schema)};"

    def _type(self, field: str, schema: Schema, nested: dict[str, str], member: bool) -> str:
        if schema.name in names.LOGICAL:
            path, type_name = names.LOGICAL[schema.name]
            self._imports[path] = None
            return type_name
        if names.enum_name(schema) is not None:
            return self._enum(schema, nested)
        if schema.type is Type.MAP:
            return self._map(schema, nested)
        if schema.type is Type.STRUCT:
            name = self._short_name(schema.name)
            name = f"{name}Message" if name == field else name
            if name not in nested:
                # A message that contains itself would be found here again.
                nested[name] = ""
                nested[name] = self._message(name, schema)
            return name
        if self._is_wrapped(schema, member):
            self._imports[names.WRAPPERS] = None
            return names.wrapper_of(schema)
        return parameters_of(schema).get(names.PROTOBUF_TYPE, SCALARS[schema.type])

    def _is_wrapped(self, schema: Schema, member: bool) -> bool:
        if not self._options.wrapper_for_nullables or not schema.optional:
            return False
        return not member or parameters_of(schema).get(names.WRAPPER) == "true"

    def _enum(self, schema: Schema, nested: dict[str, str]) -> str:
        parameters = parameters_of(schema)
        name = parameters[names.ENUM]
        start = f"{names.ENUM}."
        values = [
            f"{each.removeprefix(start)} = {number};"
            for each, number in parameters.items()
            if each.startswith(start)
        ]
        nested.setdefault(name, f"enum {name} {{ {' '.join(values)} }}")
        return name

    def _map(self, schema: Schema, nested: dict[str, str]) -> str:
        name = f"{_camel(self._short_name(schema.name))}{names.ENTRY}"
        inner: dict[str, str] = {}
        key = self._field(names.KEY, _present(schema.key_schema), 1, inner)
        value = self._field(names.VALUE, _present(schema.value_schema), 2, inner)
        nested.setdefault(name, f"message {name} {{ {' '.join([key, value, *inner.values()])} }}")
        return name

    def _parameters(self, schema: Schema) -> str:
        """Return the option with what Protobuf's type does not tell."""
        found: dict[str, str] = {}
        if schema.name in names.LOGICAL:
            own = parameters_of(schema)
            pairs = (("precision", own.get(names.PRECISION)), ("scale", own.get(names.SCALE)))
            found = {name: each for name, each in pairs if each is not None}
        elif schema.type in (Type.INT8, Type.INT16):
            found = {names.CONNECT_TYPE: schema.type.value}
        if not found:
            return ""
        self._imports[names.META] = None
        pairs_text = ", ".join(f'{{key: "{name}", value: "{each}"}}' for name, each in found.items())
        return f" [(confluent.field_meta) = {{params: [{pairs_text}]}}]"


class _Tags:
    """The numbers of a message's fields: those of the parameters, the others counted."""

    def __init__(self, schema: Schema) -> None:
        members = [
            each.schema
            for field in schema.fields
            for each in (field.schema.fields if names.is_union(field.schema) else (field,))
        ]
        self._used = {int(tag) for each in members if (tag := parameters_of(each).get(names.TAG))}
        self._next = 1

    def of(self, schema: Schema) -> int:
        tag = parameters_of(schema).get(names.TAG)
        if tag is not None:
            return int(tag)
        while self._next in self._used:
            self._next += 1
        self._next += 1
        return self._next - 1


def _camel(name: str) -> str:
    """Return the name of a map's field as a compiler begins that of its entries."""
    return "".join(each.capitalize() for each in name.split("_")) if "_" in name else name


def _present(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("Arrays and maps need the schema of their elements to be written as Protobuf.")
    return schema
