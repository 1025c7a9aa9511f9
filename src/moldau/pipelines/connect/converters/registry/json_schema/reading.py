"""Connect schemas of JSON Schemas, as Confluent's converter makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from moldau.pipelines.connect.converters.registry.json_schema import options as names
from moldau.pipelines.connect.converters.registry.json_schema.options import TYPES, Options
from moldau.pipelines.connect.converters.registry.json_schema.values import reader
from moldau.pipelines.connect.converters.registry.names import parameters_of
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import STRING, Schema, Type, array, map_of, struct
from moldau.pipelines.connect.data.struct import with_default

_CONNECT_TYPES: Final = {name: kind for kind, (_, name) in TYPES.items() if name is not None}
_NUMBERS: Final = ("integer", "number")
_NULL: Final[Mapping[str, Any]] = {"type": "null"}


def connect_schema(
    root: Any, registry: Registry[Any], options: Options, version: int | None = None
) -> Schema:
    """Return the schema of a JSON Schema; `registry` has the schemas that it references."""
    named = root.get("$schema") if isinstance(root, dict) else None
    specification = specification_with(named, DRAFT202012) if named else DRAFT202012
    resolver = registry.resolver_with_root(specification.create_resource(root))
    return _Reader(options).schema(root, resolver, version=version)


class _Reader:
    def __init__(self, options: Options) -> None:
        self._options = options
        #: References that are being followed: a schema that contains itself cannot be one of Connect here.
        self._open: list[int] = []

    def schema(
        self, node: Any, resolver: Any, *, version: int | None = None, optional: bool = False
    ) -> Schema:
        if not isinstance(node, dict) or not (_is_typed(node) or "$ref" in node):
            raise DataError(f"The JSON Schema allows any type, which Connect cannot express: {node}")
        if "$ref" in node:
            return self._referenced(node["$ref"], resolver, version=version, optional=optional)
        if "allOf" in node or (("oneOf" in node or "anyOf" in node) and "properties" in node):
            return self._all_of(node, resolver, version=version, optional=optional)
        members = _alternatives(node)
        if members is not None:
            return self._union(members, resolver, version=version, optional=optional)
        found = self._described(self._typed(node, resolver), node, version)
        return found.replace(optional=True) if optional else found

    def _referenced(self, reference: str, resolver: Any, *, version: int | None, optional: bool) -> Schema:
        try:
            found = resolver.lookup(reference)
        except Unresolvable as error:
            raise DataError(f"The JSON Schema's reference {reference} cannot be resolved") from error
        identity = id(found.contents)
        if identity in self._open:
            raise DataError(f"{reference} contains itself: recursive schemas cannot be converted.")
        self._open.append(identity)
        schema = self.schema(found.contents, found.resolver, version=version, optional=optional)
        self._open.pop()
        return schema

    def _union(self, members: list[Any], resolver: Any, *, version: int | None, optional: bool) -> Schema:
        others = [each for each in members if each != _NULL]
        if len(members) == 1 and self._options.flatten_singletons:
            return self.schema(members[0], resolver)
        if len(members) == 2 and len(others) == 1:
            return self.schema(others[0], resolver, version=version, optional=True)
        fields = [
            (f"{names.ONE_OF_FIELD}{number}", self.schema(each, resolver, optional=True))
            for number, each in enumerate(others)
        ]
        return struct(fields, name=names.ONE_OF, optional=optional or len(others) < len(members))

    def _all_of(self, node: dict[str, Any], resolver: Any, *, version: int | None, optional: bool) -> Schema:
        """Return the struct of all properties together, or the one type that the parts restrict."""
        properties: dict[str, tuple[Any, Any]] = {}
        required: set[str] = set()
        self._collect(node, resolver, properties, required)
        if properties:
            fields = self._fields(properties, required)
            found = self._described(struct(fields), node, version)
            return found.replace(optional=True) if optional else found
        parts = [each for each in node["allOf"] if isinstance(each, dict)]
        own = {name: each for name, each in node.items() if name != "allOf"}
        parts = [own, *parts] if _is_typed(own) else parts
        chosen = next((each for each in parts if _is_typed(each) or "$ref" in each), None)
        if chosen is None:
            raise DataError("An allOf without types cannot be converted")
        return self.schema(chosen, resolver, version=version, optional=optional)

    def _collect(
        self, node: Any, resolver: Any, properties: dict[str, tuple[Any, Any]], required: set[str]
    ) -> None:
        if not isinstance(node, dict):
            return
        if "$ref" in node:
            try:
                found = resolver.lookup(node["$ref"])
            except Unresolvable as error:
                raise DataError(f"The JSON Schema's reference {node['$ref']} cannot be resolved") from error
            if id(found.contents) not in self._open:
                self._open.append(id(found.contents))
                self._collect(found.contents, found.resolver, properties, required)
                self._open.pop()
            return
        for name, each in node.get("properties", {}).items():
            properties[name] = (each, resolver)
        required.update(node.get("required", ()))
        for each in node.get("allOf", ()):
            self._collect(each, resolver, properties, required)

    def _typed(self, node: dict[str, Any], resolver: Any) -> Schema:
        kind = _kind(node)
        connect_type = node.get(names.CONNECT_TYPE)
        if kind in _NUMBERS:
            return _number(kind, connect_type)
        if kind == "boolean":
            return Schema(Type.BOOLEAN)
        if "enum" in node or "const" in node:
            return _enum(node.get("enum", [node.get("const")]))
        if kind == "string":
            return Schema(Type.BYTES if connect_type == "bytes" else Type.STRING)
        if kind == "array":
            return self._array(node, connect_type, resolver)
        if connect_type == "map":
            return map_of(STRING, self.schema(node.get("additionalProperties"), resolver))
        properties = {name: (each, resolver) for name, each in node.get("properties", {}).items()}
        return struct(self._fields(properties, set(node.get("required", ()))))

    def _array(self, node: dict[str, Any], connect_type: Any, resolver: Any) -> Schema:
        items = node.get("items")
        if items is None:
            raise DataError("Array schema did not specify the items type")
        if connect_type == "map" and isinstance(items, dict) and "properties" in items:
            entry = items["properties"]
            return map_of(
                self.schema(entry.get(names.KEY), resolver), self.schema(entry.get(names.VALUE), resolver)
            )
        return array(self.schema(items, resolver))

    def _fields(
        self, properties: Mapping[str, tuple[Any, Any]], required: set[str]
    ) -> list[tuple[str, Schema]]:
        """Return the fields in the order of `connect.index`."""
        order: Callable[[tuple[int, str]], Any] = lambda each: _index(properties[each[1]][0], each[0])  # noqa: E731
        found = []
        for _, name in sorted(enumerate(properties), key=order):
            node, resolver = properties[name]
            optional = self._options.optional_if_not_required and name not in required
            found.append((name, self.schema(node, resolver, optional=optional)))
        return found

    def _described(self, found: Schema, node: dict[str, Any], version: int | None) -> Schema:
        """Add name, version, doc, parameters and default."""
        title, parameters = node.get("title"), node.get(names.CONNECT_PARAMETERS)
        changes: dict[str, Any] = {}
        if title is not None:
            changes["name"] = title
        given = node.get(names.CONNECT_VERSION, version)
        if given is not None:
            changes["version"] = int(given)
        if node.get("description") is not None:
            changes["doc"] = node["description"]
        if parameters:
            changes["parameters"] = {**parameters_of(found), **parameters}
        found = found.replace(**changes)
        default = node.get("default")
        return found if default is None else with_default(found, reader(found)(default))


def _is_typed(node: Mapping[str, Any]) -> bool:
    return any(
        each in node for each in ("type", "oneOf", "anyOf", "allOf", "enum", "const", "properties", "items")
    )


def _alternatives(node: Mapping[str, Any]) -> list[Any] | None:
    """Return the members of a union; None if the schema is of one type."""
    found = node.get("oneOf") or node.get("anyOf")
    if found is not None:
        return list(found)
    kinds = node.get("type")
    if not isinstance(kinds, list):
        return None
    others = {name: each for name, each in node.items() if name != "type"}
    return [_NULL if each == "null" else {**others, "type": each} for each in kinds]


def _kind(node: Mapping[str, Any]) -> str:
    kind = node.get("type")
    if isinstance(kind, str):
        return kind
    if "properties" in node:
        return "object"
    return "array" if "items" in node else "enum"


def _number(kind: str, connect_type: Any) -> Schema:
    if connect_type is None:
        return Schema(Type.INT64 if kind == "integer" else Type.FLOAT64)
    if connect_type not in _CONNECT_TYPES:
        raise DataError(f"Unsupported type {connect_type}")
    return Schema(_CONNECT_TYPES[connect_type])


def _enum(symbols: list[Any]) -> Schema:
    parameters = {names.ENUM: ""}
    for each in symbols:
        symbol = names.NULL_MARKER if each is None else str(each)
        parameters[f"{names.ENUM}.{symbol}"] = symbol
    return Schema(Type.STRING, parameters=parameters)


def _index(node: Any, position: int) -> int:
    index = node.get(names.CONNECT_INDEX, position) if isinstance(node, dict) else position
    return int(index)
