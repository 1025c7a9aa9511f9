"""Values of Connect as fastavro writes and reads them, by functions that are made once per schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.pipelines.connect.converters.registry.avro import options as names
from moldau.pipelines.connect.converters.registry.avro.options import AVRO_TYPES, Options
from moldau.pipelines.connect.converters.registry.avro.reading import logical_value
from moldau.pipelines.connect.converters.registry.avro.writing import raw_value
from moldau.pipelines.connect.converters.registry.names import parameters_of, scrubbed, split
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, inferred_type, java_class, validate_value

Convert = Callable[[Any], Any]

_LOGICAL: Final = frozenset(
    {logical.DECIMAL_NAME, logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME}
)
#: Python's types of values that fastavro returns for the members of a union.
_PYTHON_TYPES: Final[Mapping[Type, tuple[type, ...]]] = {
    Type.INT8: (int,),
    Type.INT16: (int,),
    Type.INT32: (int,),
    Type.INT64: (int,),
    Type.FLOAT32: (float,),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes,),
    Type.ARRAY: (list,),
    Type.MAP: (dict, list),
}
_ANYTHING: Final[Mapping[Type, str]] = {
    **{kind: name for kind, name in AVRO_TYPES.items() if kind not in (Type.ARRAY, Type.MAP)},
    Type.ARRAY: "array",
    Type.MAP: "map",
}


def writer(schema: Schema | None, options: Options) -> Convert:
    """Return the function that makes Avro values of Connect's values."""
    if schema is None:
        return _any_to_avro
    convert = _writer(schema, options)

    def checked(value: Any) -> Any:
        validate_value(schema, value)
        return convert(value)

    return checked


def _writer(schema: Schema, options: Options) -> Convert:
    """Return the function for values that are valid."""
    convert = _present_writer(schema, options)
    if schema.type.is_primitive and schema.name not in _LOGICAL and not names.is_fixed(schema):
        return convert
    return lambda value: None if value is None else convert(value)


def _present_writer(schema: Schema, options: Options) -> Convert:
    if names.is_union(schema):
        return _union_writer(schema, options)
    if schema.type is Type.STRUCT:
        return _record_writer(schema, options)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        element = _writer(schema.value_schema, options)
        return lambda value: [element(each) for each in value]
    if schema.type is Type.MAP and schema.value_schema is not None and schema.key_schema is not None:
        key, entry = _writer(schema.key_schema, options), _writer(schema.value_schema, options)
        if options.has_text_keys(schema):
            return lambda value: {name: entry(each) for name, each in value.items()}
        return lambda value: [
            {names.KEY: key(name), names.VALUE: entry(each)} for name, each in value.items()
        ]
    if names.is_fixed(schema):
        return _fixed_writer(schema)
    if schema.name in _LOGICAL:
        return lambda value: raw_value(schema, value)
    return lambda value: value


def _record_writer(schema: Schema, options: Options) -> Convert:
    fields = [
        (scrubbed(each.name) if options.scrub else each.name, each, _writer(each.schema, options))
        for each in schema.fields
    ]
    type_name = _type_name(schema, options)

    def convert(value: Struct) -> dict[str, Any]:
        # The type saves fastavro the search for the member of a union.
        found: dict[str, Any] = {} if type_name is None else {"-type": type_name}
        own = value.values
        for name, field, of_field in fields:
            each = own[field.index]
            if each is None and not options.ignore_defaults:
                each = field.schema.default
            if each is None and not field.schema.optional:
                raise DataError(f"Found null value for the required field {field.name}")
            found[name] = of_field(each)
        return found

    return convert


def _type_name(schema: Schema, options: Options) -> str | None:
    """Return the full name of a record; None for one whose number is not known here."""
    if schema.name is None:
        return None
    space, name = split(schema.name, options.scrub)
    return f"{space}.{name}" if space else name


def _union_writer(schema: Schema, options: Options) -> Convert:
    members = [(each, _writer(each.schema, options), _tag(each.schema, options)) for each in schema.fields]

    def convert(value: Struct) -> Any:
        for field, of_member, tag in members:
            each = value.values[field.index]
            if each is not None:
                found = of_member(each)
                return found if tag is None else (tag, found)
        return None

    return convert


def _tag(schema: Schema, options: Options) -> str | None:
    """Return the name by which fastavro finds a member, where its value alone is not enough."""
    if names.is_enum(schema) and options.enhanced:
        return parameters_of(schema)[names.ENUM]
    if names.is_fixed(schema):
        return _type_name(schema, options)
    plain = schema.type.is_primitive and schema.name is None and not schema.parameters
    return AVRO_TYPES[schema.type] if plain and schema.type not in (Type.INT8, Type.INT16) else None


def _fixed_writer(schema: Schema) -> Convert:
    size = int(parameters_of(schema)[names.FIXED_SIZE])

    def convert(value: Any) -> bytes:
        data: bytes = raw_value(schema, value)
        if schema.name == logical.DECIMAL_NAME and len(data) < size:
            data = (b"\xff" if data[0] & 0x80 else b"\x00") * (size - len(data)) + data
        if len(data) != size:
            raise DataError(f"Fixed size {size} expected, but the value has {len(data)} bytes")
        return data

    return convert


def _any_to_avro(value: Any) -> dict[str, Any]:
    """Return a value without schema as the record of any value."""
    if value is None:
        return {}
    kind = inferred_type(value)
    if kind is None or kind is Type.STRUCT:
        raise DataError(f"Unknown Java type for schemaless data: class {java_class(value)}")
    if kind is Type.ARRAY:
        return {"array": [_any_to_avro(each) for each in value]}
    if kind is Type.MAP:
        return {
            "map": [
                {names.KEY: _any_to_avro(name), names.VALUE: _any_to_avro(each)}
                for name, each in value.items()
            ]
        }
    return {_ANYTHING[kind]: value}


def reader(schema: Schema | None, options: Options) -> Convert:
    """Return the function that makes Connect's values of Avro values."""
    if schema is None:
        return _any_of_avro
    convert = _present_reader(schema, options)

    def read(value: Any) -> Any:
        if value is None:
            if not schema.optional:
                raise DataError("Found null value for non-optional schema")
            return None
        return convert(value)

    return read


def _present_reader(schema: Schema, options: Options) -> Convert:
    if names.is_union(schema):
        return _union_reader(schema, options)
    if schema.type is Type.STRUCT:
        return _record_reader(schema, options)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        element = reader(schema.value_schema, options)
        return lambda value: [element(each) for each in value]
    if schema.type is Type.MAP and schema.value_schema is not None and schema.key_schema is not None:
        key, entry = reader(schema.key_schema, options), reader(schema.value_schema, options)

        def pairs(value: Any) -> dict[Any, Any]:
            if isinstance(value, dict):
                return {name: entry(each) for name, each in value.items()}
            return {key(each[names.KEY]): entry(each[names.VALUE]) for each in value}

        return pairs
    if schema.name in _LOGICAL:
        return lambda value: logical_value(schema, _plain(value))
    return _plain


def _plain(value: Any) -> Any:
    """Return the value of a named type in a union without the name."""
    return value[1] if type(value) is tuple else value


def _record_reader(schema: Schema, options: Options) -> Convert:
    fields = [
        (scrubbed(each.name) if options.scrub else each.name, reader(each.schema, options))
        for each in schema.fields
    ]

    def convert(value: Any) -> Struct:
        record = _plain(value)
        found = Struct(schema)
        found.values = [of_field(record[name]) for name, of_field in fields]
        return found

    return convert


def _union_reader(schema: Schema, options: Options) -> Convert:
    members = [(each, reader(each.schema, options)) for each in schema.fields]

    def convert(value: Any) -> Struct:
        for field, of_member in members:
            if _fits(field.schema, field.name, value, options):
                found = Struct(schema)
                found.values[field.index] = of_member(value)
                return found
        raise DataError("Did not find matching union field for data")

    return convert


def _fits(schema: Schema, name: str, value: Any, options: Options) -> bool:
    """Return whether a value of a union belongs to the member."""
    if type(value) is tuple:
        full: str = value[0]
        if schema.type is not Type.STRUCT and not names.is_enum(schema) and not names.is_fixed(schema):
            return False
        return name == (full if options.enhanced else full.rpartition(".")[2])
    if schema.type is Type.STRUCT or names.is_enum(schema) or names.is_fixed(schema):
        return False
    if isinstance(value, bool):
        return schema.type is Type.BOOLEAN
    return isinstance(value, _PYTHON_TYPES[schema.type])


def _any_of_avro(value: Any) -> Any:
    record = _plain(value)
    for name, each in record.items():
        if each is None:
            continue
        if name == "array":
            return [_any_of_avro(one) for one in each]
        if name == "map":
            return {_any_of_avro(one[names.KEY]): _any_of_avro(one[names.VALUE]) for one in each}
        return each
    return None
