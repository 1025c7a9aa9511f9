"""The columns of CREATE without columns: those of an Avro schema, or of a schema registry's schemas.

As in ksqlDB, the value's columns are inferred if the statement has none, and the key's columns if the key
format has schemas. A schema that is not a record is one column, named ROWKEY or ROWVAL. The ids of the
schemas are stored with the source, so that later versions of the subject do not change its columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.base.errors import KafkaError
from moldau.pipelines.formats.registry.options import RegistryOptions, registry_options
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.statements import ColumnDefinition, CreateSource
from moldau.pipelines.sql.types import from_spark

_WITH_SCHEMAS = ("AVRO", "JSON_SR", "PROTOBUF")


def schema_ids(given: Mapping[str, str], topic: str, statement: CreateSource) -> dict[str, str]:
    """Add the ids of the schemas whose columns are inferred."""
    found = dict(given)
    for part in ("value", "key"):
        registry = _inferred(given, topic, statement, key=part == "key")
        if registry is None:
            continue
        try:
            registered = registry.schema()
        except KafkaError as error:
            raise SqlError(str(error), statement.name.place) from error
        if registered is not None:
            found[f"{part}_schema_id"] = str(registered.id)
        elif part == "value":
            raise SqlError(
                f"The schema registry has no subject {registry.subject}, and no columns are declared",
                statement.name.place,
                "Declare the columns, or register a schema first.",
            )
    return found


def columns_of_schemas(
    given: Mapping[str, str], topic: str, statement: CreateSource
) -> tuple[ColumnDefinition, ...]:
    """Return the declared columns, and the inferred ones of key and value."""
    columns = list(statement.columns)
    for part, role in (("key", "KEY"), ("value", "VALUE")):
        registry = _inferred(given, topic, statement, key=part == "key")
        if registry is not None and registry.schema_id is not None:
            columns += _registered(registry, role)
    if not columns:
        columns += _avro_columns(given, statement)
    return tuple(columns)


def _inferred(
    given: Mapping[str, str], topic: str, statement: CreateSource, *, key: bool
) -> RegistryOptions | None:
    """Return the registry if the columns of the key or the value are inferred."""
    roles = {column.role for column in statement.columns}
    declared = "KEY" in roles if key else "VALUE" in roles
    name = given.get("key_format" if key else "value_format", "").upper()
    if declared or name not in _WITH_SCHEMAS:
        return None
    return registry_options(given, topic, key=key)


def _registered(registry: RegistryOptions, role: str) -> list[ColumnDefinition]:
    from moldau.pipelines.formats.registry.columns import registered_columns

    schema = registry.schema()
    if schema is None:
        return []
    single = "ROWKEY" if role == "KEY" else "ROWVAL"
    columns = registered_columns(registry.client, schema.schema, single)
    found = from_spark(columns.jsonValue())
    pairs = zip(found.fields, found.of, strict=True)
    return [ColumnDefinition(name, kind, role) for name, kind in pairs]  # type: ignore[arg-type]


def _avro_columns(given: Mapping[str, str], statement: CreateSource) -> list[ColumnDefinition]:
    from moldau.pipelines.formats.avro import columns_of, given_schema

    schema = given_schema(given)
    if schema is None:
        raise SqlError(
            "No columns are declared",
            statement.name.place,
            "Write: CREATE STREAM name (id INT KEY, total DOUBLE) …",
        )
    found = from_spark(columns_of(schema).jsonValue())
    return [ColumnDefinition(name, kind) for name, kind in zip(found.fields, found.of, strict=True)]
