"""Connect schemas of Avro schemas, as Confluent's converter makes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.converters.registry.avro import options as names
from moldau.pipelines.connect.converters.registry.avro.options import Options
from moldau.pipelines.connect.converters.registry.names import parameters_of, scrubbed
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import STRING, Schema, Type, array, map_of, struct
from moldau.pipelines.connect.data.struct import Struct, with_default

logger = logging.getLogger(__name__)

#: Where the codec keeps logical types: values are read as they are encoded.
LOGICAL_TYPE: Final = "moldau.logicalType"
_PRIMITIVES: Final[Mapping[str, Type]] = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
    "enum": Type.STRING,
}
_LOGICAL: Final[Mapping[tuple[str, str | None], Schema]] = {
    ("int", "date"): logical.DATE,
    ("int", "time-millis"): logical.TIME,
    ("long", "timestamp-millis"): logical.TIMESTAMP,
}
_CONNECT_TYPES: Final = {"int8": Type.INT8, "int16": Type.INT16}
_NAMED: Final = ("record", "error", "enum", "fixed")
_NO_DEFAULT: Final = object()


def connect_schema(
    node: Any, named: Mapping[str, Any], options: Options, version: int | None = None
) -> Schema | None:
    """Return the schema of a parsed Avro schema with full names; None for that of any value."""
    if isinstance(node, dict) and node.get("name") == names.ANYTHING:
        return None
    return _Reader(named, options).schema(node, version=version)


class _Reader:
    def __init__(self, named: Mapping[str, Any], options: Options) -> None:
        self._named = named
        self._options = options
        #: Records that are being read: one that contains itself cannot be a schema of Connect here.
        self._open: set[str] = set()

    def schema(
        self,
        node: Any,
        *,
        optional: bool = False,
        default: Any = _NO_DEFAULT,
        doc: str | None = None,
        version: int | None = None,
    ) -> Schema:
        if isinstance(node, str) and node not in _PRIMITIVES:
            node = self._declared(node)
        if isinstance(node, list):
            return self._union(node, optional=optional, doc=doc)
        properties: Mapping[str, Any] = node if isinstance(node, dict) else {}
        kind: str = properties.get("type", node)
        if isinstance(kind, dict | list):
            return self.schema(kind, optional=optional, default=default, doc=doc, version=version)
        found = self._base(kind, properties)
        found = self._documented(found, kind, properties, doc)
        found = self._annotated(found, kind, properties, version)
        found = self._with_default(found, kind, properties, default)
        return found.replace(optional=True) if optional else found

    def _declared(self, name: str) -> Any:
        if name == "null":
            raise DataError("Standalone null schemas are not supported by this converter")
        if name not in self._named:
            raise DataError(f"The Avro type {name} is not known.")
        return self._named[name]

    def _base(self, kind: str, node: Mapping[str, Any]) -> Schema:
        if kind in ("record", "error"):
            return self._record(node)
        if kind == "array":
            return self._array(node["items"])
        if kind == "map":
            return map_of(STRING, self.schema(node["values"]))
        if kind not in _PRIMITIVES:
            raise DataError(f"The Avro type {kind} cannot be read.")
        logical_type: str | None = node.get(LOGICAL_TYPE)
        if kind in ("bytes", "fixed"):
            found = _decimal(node) if logical_type == "decimal" else Schema(Type.BYTES)
            return found if kind == "bytes" else _with(found, {names.FIXED_SIZE: str(node["size"])})
        if kind == "enum":
            return self._enum(node)
        if (kind, logical_type) in _LOGICAL:
            return _LOGICAL[kind, logical_type]
        connect_type = node.get(names.CONNECT_TYPE)
        if kind == "int" and logical_type is None and connect_type is not None:
            if connect_type not in _CONNECT_TYPES:
                raise DataError("Connect type annotation for Avro int field is null")
            return Schema(_CONNECT_TYPES[connect_type])
        return Schema(_PRIMITIVES[kind])

    def _array(self, items: Any) -> Schema:
        entry = self._named.get(items) if isinstance(items, str) else items
        if not isinstance(entry, dict) or not _is_entry(entry):
            return array(self.schema(items))
        fields = {each["name"]: each["type"] for each in entry["fields"]}
        if fields.keys() != {names.KEY, names.VALUE}:
            raise DataError(
                "Found map encoded as array of key-value pairs, but array elements do not match the "
                "expected format."
            )
        return map_of(self.schema(fields[names.KEY]), self.schema(fields[names.VALUE]))

    def _record(self, node: Mapping[str, Any]) -> Schema:
        name: str = node["name"]
        if name in self._open:
            raise DataError(f"The Avro record {name} contains itself: recursive schemas cannot be converted.")
        self._open.add(name)
        parameters: dict[str, str] = {}
        if self._keeps_docs and "doc" in node:
            parameters[names.RECORD_DOC] = node["doc"]
        fields = []
        for each in node["fields"]:
            doc = each.get("doc")
            if self._keeps_docs and doc is not None:
                parameters[names.FIELD_DOC + each["name"]] = doc
            found = self.schema(each["type"], default=each.get("default", _NO_DEFAULT), doc=doc)
            own = each.get(names.CONNECT_PARAMETERS)
            if self._options.metadata and isinstance(own, dict):
                found = _with(found, {key: str(value) for key, value in own.items()})
            fields.append((each["name"], found))
        self._open.discard(name)
        return struct(fields, parameters=parameters)

    def _enum(self, node: Mapping[str, Any]) -> Schema:
        parameters: dict[str, str] = {}
        short = node["name"].rpartition(".")[2]
        if self._options.metadata and "doc" in node:
            name = names.CONNECT_ENUM_DOC if self._options.discard_docs else names.ENUM_DOC + short
            parameters[name] = node["doc"]
        if self._keeps_docs and "default" in node:
            parameters[names.ENUM_DEFAULT + short] = node["default"]
        parameters[names.ENUM] = node["name"]
        parameters |= {f"{names.ENUM}.{each}": each for each in node["symbols"]}
        return Schema(Type.STRING, parameters=parameters)

    @property
    def _keeps_docs(self) -> bool:
        return self._options.metadata and not self._options.discard_docs

    def _union(self, members: list[Any], *, optional: bool, doc: str | None) -> Schema:
        others = [each for each in members if each != "null"]
        if len(members) == 1 and self._options.flatten_singletons:
            return self.schema(members[0], doc=doc)
        if len(members) == 2 and len(others) == 1:
            return self.schema(others[0], optional=True, doc=doc)
        fields: dict[str, Schema] = {}
        for each in others:
            member = self.schema(each, optional=True)
            name = self._union_field(each)
            if name in fields:
                raise DataError("Multiple union schemas map to the Connect union field name")
            fields[name] = member
        return struct(fields, name=names.UNION, optional=optional or len(others) < len(members))

    def _union_field(self, node: Any) -> str:
        node = self._named.get(node, node) if isinstance(node, str) else node
        if isinstance(node, dict) and node["type"] in _NAMED:
            full: str = node["name"]
            return full if self._options.enhanced else full.rpartition(".")[2]
        return str(node["type"] if isinstance(node, dict) else node)

    def _documented(self, found: Schema, kind: str, node: Mapping[str, Any], doc: str | None) -> Schema:
        own = node.get(names.CONNECT_DOC)
        if not self._options.discard_docs:
            return found.replace(doc=own) if self._options.metadata and own is not None else found
        of_type = node.get("doc") if kind in _NAMED else None
        chosen = doc if doc is not None else of_type if of_type is not None else own
        if chosen is not None:
            found = found.replace(doc=chosen)
        if self._options.metadata and of_type is not None:
            found = _with(found, {names.CONNECT_RECORD_DOC: of_type})
        return found

    def _annotated(self, found: Schema, kind: str, node: Mapping[str, Any], version: int | None) -> Schema:
        """Add version, parameters and name."""
        given = node.get(names.CONNECT_VERSION, version)
        if given is not None:
            if found.version is not None and given != found.version and names.CONNECT_VERSION in node:
                raise DataError(f"Mismatched versions: {found.version} and {given} in the Avro schema")
            found = found.replace(version=found.version or int(given))
        parameters = node.get(names.CONNECT_PARAMETERS)
        if self._options.metadata and isinstance(parameters, dict):
            found = _with(found, {key: str(value) for key, value in parameters.items()})
        extra = {key: str(value) for key, value in node.items() if key.startswith("avro")}
        found = _with(found, extra) if extra else found
        name = node.get(names.CONNECT_NAME)
        if name is None and kind in _NAMED and (kind != "fixed" or found.name is None):
            name = node["name"]
        if name is None or name.startswith(names.DEFAULT_FULL_NAME):
            return found
        if found.name is not None and found.name != name:
            raise DataError(f"Mismatched names: {found.name} and {name} in the Avro schema")
        return found.replace(name=name)

    def _with_default(self, found: Schema, kind: str, node: Mapping[str, Any], default: Any) -> Schema:
        own = node.get(names.CONNECT_DEFAULT, _NO_DEFAULT)
        if default is _NO_DEFAULT or default is None:
            default = own
        elif self._keeps_docs and own is _NO_DEFAULT:
            found = _with(found, {names.FIELD_DEFAULT: "true"})
        if default is _NO_DEFAULT or default is None:
            return found
        try:
            return with_default(found, self._default(found, default))
        except (DataError, ValueError, TypeError, KeyError, AttributeError) as error:
            logger.warning("Ignoring the invalid default of an Avro schema of type %s: %s", kind, error)
            return found

    def _default(self, schema: Schema, value: Any) -> Any:
        """Return Connect's value of a default as JSON."""
        if value is None:
            return None
        if schema.type is Type.STRUCT:
            names_of = scrubbed if self._options.scrub else str
            found = Struct(schema)
            for each in schema.fields:
                found.put(each.name, self._default(each.schema, value[names_of(each.name)]))
            return found
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return [self._default(schema.value_schema, each) for each in value]
        if schema.type is Type.MAP and schema.value_schema is not None and schema.key_schema is not None:
            pairs = value.items() if isinstance(value, dict) else value
            key, entry = schema.key_schema, schema.value_schema
            return {self._default(key, one): self._default(entry, other) for one, other in pairs}
        if schema.type is Type.BYTES:
            value = value.encode("latin-1")
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            value = float(value)
        return logical_value(schema, value)


def logical_value(schema: Schema, value: Any) -> Any:
    """Return the value of a logical type, or the value itself."""
    if schema.name == logical.DECIMAL_NAME:
        return logical.decimal_from_bytes(schema, value)
    if schema.name == logical.DATE_NAME:
        return logical.date_from_days(schema, value)
    if schema.name == logical.TIME_NAME:
        return logical.time_from_millis(schema, value)
    if schema.name == logical.TIMESTAMP_NAME:
        return logical.timestamp_from_millis(schema, value)
    return value


def _decimal(node: Mapping[str, Any]) -> Schema:
    found = logical.decimal_schema(int(node.get("scale", 0)))
    precision = node.get("precision", names.DEFAULT_PRECISION)
    if precision == names.DEFAULT_PRECISION:
        return found
    return _with(found, {names.PRECISION: str(precision)})


def _with(schema: Schema, parameters: Mapping[str, str]) -> Schema:
    return schema.replace(parameters={**parameters_of(schema), **parameters})


def _is_entry(node: Mapping[str, Any]) -> bool:
    return node["type"] == "record" and (
        node["name"] == f"{names.NAMESPACE}.{names.MAP_ENTRY}"
        or node.get(names.INTERNAL_TYPE) == names.MAP_ENTRY
    )
