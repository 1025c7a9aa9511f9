"""The loader of drafts 2019-09 and 2020-12.

Each keyword is a schema of its own. The schemas of one object are joined in the order of Java's hash map, as
in Confluent's registry, because the result depends on it: keywords of one kind merge, different kinds become
an `allOf`, and a list of types absorbs the keywords of its types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from moldau.schemas import hashorder
from moldau.schemas.json import text
from moldau.schemas.json.documents import Location
from moldau.schemas.json.joining import allof_parts, join
from moldau.schemas.json.loading import Loading, LoadObject, of_type, pattern, require, strings
from moldau.schemas.json.model import (
    Annotations,
    Anything,
    Array,
    Boolean,
    Combined,
    Conditional,
    Const,
    Criterion,
    Empty,
    Enum,
    Not,
    Nothing,
    Null,
    Number,
    Object,
    Reference,
    Schema,
    String,
)
from moldau.schemas.trampoline import Recursion

_NUMBERS = (int, Decimal)
_TYPES: dict[str, Callable[[], Schema]] = {
    "string": String,
    "integer": lambda: Number(integer=True),
    "number": Number,
    "boolean": Boolean,
    "null": Null,
    "array": Array,
    "object": Object,
}
#: Keywords with a number, the kind of schema they belong to, and their attribute.
_LIMITS: dict[str, tuple[type[Schema], str]] = {
    "minLength": (String, "min_length"),
    "maxLength": (String, "max_length"),
    "minItems": (Array, "min_items"),
    "maxItems": (Array, "max_items"),
    "minProperties": (Object, "min_properties"),
    "maxProperties": (Object, "max_properties"),
    "minimum": (Number, "minimum"),
    "maximum": (Number, "maximum"),
    "exclusiveMinimum": (Number, "exclusive_minimum"),
    "exclusiveMaximum": (Number, "exclusive_maximum"),
    "multipleOf": (Number, "multiple_of"),
}
#: Keywords that are not known to be data of the user.
_KNOWN = frozenset(_LIMITS) | {
    *(
        "$id",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "$ref",
        "$defs",
        "$schema",
        "$vocabulary",
        "allOf",
        "anyOf",
    ),
    *("oneOf", "additionalProperties", "properties", "patternProperties", "title", "description", "readOnly"),
    *(
        "writeOnly",
        "deprecated",
        "default",
        "enum",
        "const",
        "false",
        "true",
        "type",
        "not",
        "required",
        "uniqueItems",
    ),
    *(
        "items",
        "prefixItems",
        "contains",
        "minContains",
        "maxContains",
        "if",
        "then",
        "else",
        "dependentSchemas",
    ),
    *("dependentRequired", "unevaluatedItems", "unevaluatedProperties", "propertyNames", "pattern", "format"),
}


def loader() -> LoadObject:
    """Return the function that loads an object."""

    def load_object(loading: Loading, location: Location) -> Recursion[Schema]:
        return _Object(loading, location).load()

    return load_object


class _Object:
    """The loading of one JSON object."""

    def __init__(self, loading: Loading, location: Location) -> None:
        self._loading = loading
        self._base = location.base
        self._json: dict[str, Any] = location.json

    def load(self) -> Recursion[Schema]:
        product: Schema | None = None
        for keyword in hashorder.in_grown_map(self._json):
            part = yield self._keyword(keyword)
            if part is not None:
                product = part if product is None else join(product, part)
        product = product or Combined(generated=True)
        for part in (yield self._late_parts()):
            product = join(product, part)
        if isinstance(product, Combined) and product.generated and product.criterion is Criterion.ALL:
            match product.subschemas:
                case ():
                    product = Empty()
                case (only,):
                    product = only
        for definition in (of_type(self._json, "$defs", dict) or {}).values():
            yield self._child(definition)
        return self._dynamic(self._annotated(product))

    def _child(self, json: Any) -> Recursion[Schema]:
        return self._loading.child(json, self._base)

    def _children(self, children: Iterable[Any]) -> Recursion[list[Schema]]:
        return self._loading.children(children, self._base)

    def _late_parts(self) -> Recursion[list[Schema]]:
        """Load the keywords that are joined after all others, whatever their position in the text."""
        parts: list[Schema] = []
        named = of_type(self._json, "properties", dict) or {}
        if named:
            schemas = yield self._children(named.values())
            parts.append(Object(typed=False, properties=dict(zip(named, schemas, strict=True))))
        by_pattern = of_type(self._json, "patternProperties", dict) or {}
        if by_pattern:
            schemas = yield self._children(by_pattern.values())
            by_expression = tuple(zip(map(pattern, by_pattern), schemas, strict=True))
            parts.append(Object(typed=False, pattern_properties=by_expression))
        if "unevaluatedItems" in self._json:
            parts.append(Array(typed=False, unevaluated=(yield self._child(self._json["unevaluatedItems"]))))
        if "unevaluatedProperties" in self._json:
            parts.append(
                Object(typed=False, unevaluated=(yield self._child(self._json["unevaluatedProperties"])))
            )
        return parts

    def _annotated(self, product: Schema) -> Schema:
        json = self._json
        of_type(json, "deprecated", bool)
        unknown = {keyword: json[keyword] for keyword in sorted(set(json) - _KNOWN)}
        if (unknown or json.get("$defs")) and isinstance(product, (Object, Array)):
            # Confluent's registry keeps these keywords where it stores unknown ones and definitions, which
            # replace them.
            product = replace(product, unevaluated=None)
            if isinstance(product, Array):
                product = replace(product, min_contains=None, max_contains=None)
        connect_type = json.get("connect.type")
        default = None if isinstance(product, Reference) else json.get("default")
        return replace(
            product,
            annotations=Annotations(
                title=of_type(json, "title", str),
                description=of_type(json, "description", str),
                default=None if default is None else text.write(default),
                connect_type=connect_type if isinstance(connect_type, str) else None,
                unknown=text.write(unknown) if unknown else None,
            ),
        )

    def _dynamic(self, schema: Schema) -> Schema:
        if "$dynamicRef" not in self._json:
            return schema
        reference = self._loading.reference(self._json["$dynamicRef"], self._base)
        return Combined(subschemas=(reference, *allof_parts(schema)), generated=True)

    def _keyword(self, keyword: str) -> Recursion[Schema | None]:
        json = self._json
        if keyword in _LIMITS:
            return self._limit(keyword)
        match keyword:
            case "$ref":
                return self._loading.reference(json[keyword], self._base)
            case "type":
                return self._type(of_type(json, keyword, str, list))
            case "enum":
                return Enum(values=frozenset(map(text.write, of_type(json, keyword, list))))
            case "const":
                return Const(value=text.write(json[keyword]))
            case "pattern":
                pattern(of_type(json, keyword, str))
                return String(typed=False, pattern=json[keyword])
            case "format" | "readOnly" | "writeOnly":
                of_type(json, keyword, str if keyword == "format" else bool)
                return Combined(generated=True)
            case "required":
                return Object(typed=False, required=frozenset(strings(json[keyword], keyword)))
            case "uniqueItems":
                return Array(typed=False, unique=of_type(json, keyword, bool))
            case "dependentRequired":
                return self._dependent_required()
        part: Schema | None = yield self._applicator(keyword)
        return part

    def _applicator(self, keyword: str) -> Recursion[Schema | None]:
        """Load a keyword that contains schemas."""
        value = self._json[keyword]
        part: Schema
        match keyword:
            case "allOf" | "anyOf" | "oneOf":
                part = yield self._combined(Criterion(keyword))
                return part
            case "not":
                return Not(schema=(yield self._child(value)))
            case "if":
                part = yield self._conditional()
                return part
            case "prefixItems":
                items = yield self._children(of_type(self._json, keyword, list))
                return Array(typed=False, items=tuple(items))
            case "items":
                return self._items((yield self._child(value)))
            case "contains":
                return self._contains((yield self._child(value)))
            case "additionalProperties":
                return _additional_properties((yield self._child(value)))
            case "propertyNames":
                return Object(typed=False, property_names=(yield self._child(value)))
            case "dependentSchemas":
                names = of_type(self._json, keyword, dict)
                schemas = yield self._children(names.values())
                return Object(typed=False, schema_dependencies=dict(zip(names, schemas, strict=True)))
        return None

    def _limit(self, keyword: str) -> Schema:
        kind, attribute = _LIMITS[keyword]
        value = of_type(self._json, keyword, *_NUMBERS)
        if kind is not Number:
            # Java's Number.intValue drops what does not fit an int.
            fits = -(1 << 64) < value < 1 << 64
            value = (int(value) + (1 << 31)) % (1 << 32) - (1 << 31) if fits else (1 << 31) - 1
        limited: Schema = kind(**{"typed": False, attribute: value})
        return limited

    def _type(self, types: Any) -> Schema:
        if isinstance(types, str):
            return _of_type(types)
        subschemas = tuple(map(_of_type, strings(types, "type")))
        return Combined(criterion=Criterion.ANY, subschemas=subschemas, generated=True)

    def _dependent_required(self) -> Schema:
        dependencies = of_type(self._json, "dependentRequired", dict)
        found = {
            name: frozenset(strings(names, "dependentRequired"))
            for name, names in dependencies.items()
            if names
        }
        return Object(typed=False, property_dependencies=found)

    def _combined(self, criterion: Criterion) -> Recursion[Schema]:
        subschemas: list[Schema] = []
        for json in of_type(self._json, criterion, list):
            subschemas += allof_parts((yield self._child(json)))
        return Combined(criterion=criterion, subschemas=tuple(subschemas))

    def _conditional(self) -> Recursion[Schema]:
        present = [keyword for keyword in ("if", "then", "else") if keyword in self._json]
        schemas = yield self._children(self._json[keyword] for keyword in present)
        return Conditional(parts=tuple(zip(present, schemas, strict=True)))

    def _items(self, schema: Schema) -> Schema:
        if isinstance(schema, Nothing):
            return Array(typed=False, additional_allowed=False)
        if isinstance(schema, Anything):
            return Array(typed=False)
        prefix = self._json.get("prefixItems")
        if isinstance(prefix, list) and prefix:
            return Array(typed=False, additional=schema)
        return Array(typed=False, all_items=schema)

    def _contains(self, schema: Schema) -> Schema:
        limits = {keyword: self._json.get(keyword) for keyword in ("minContains", "maxContains")}
        numbers = {keyword: value for keyword, value in limits.items() if type(value) in _NUMBERS}
        return Array(
            typed=False,
            contains=schema,
            min_contains=numbers.get("minContains", 1),
            max_contains=numbers.get("maxContains"),
        )


def _of_type(name: str) -> Schema:
    require(name in _TYPES, f"unknown type: {name}")
    return _TYPES[name]()


def _additional_properties(schema: Schema) -> Schema:
    if isinstance(schema, Nothing):
        return Object(typed=False, additional_allowed=False)
    return Object(typed=False, additional=None if isinstance(schema, Anything) else schema)
