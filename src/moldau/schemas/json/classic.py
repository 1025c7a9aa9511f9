"""The loader of drafts 4, 6 and 7.

Keywords of several kinds next to each other become an `allOf` of one schema per kind. A `$ref` hides its
siblings. Only what is used is loaded: an unused definition may be malformed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from moldau.schemas import hashorder
from moldau.schemas.json import text
from moldau.schemas.json.documents import DRAFT_4, DRAFT_7, Draft, Location, SchemaError
from moldau.schemas.json.loading import Loading, LoadObject, of_type, pattern, require, strings
from moldau.schemas.json.model import (
    NONE,
    Annotations,
    Array,
    Boolean,
    Combined,
    Conditional,
    Const,
    Criterion,
    Empty,
    Enum,
    Not,
    Null,
    Number,
    Object,
    Schema,
    String,
)
from moldau.schemas.trampoline import Recursion

_STRING = frozenset({"minLength", "maxLength", "pattern", "format"})
_NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_OBJECT = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties"}
    | {"additionalProperties", "propertyNames"}
)
_ARRAY = frozenset({"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"})
_CONDITIONAL = ("if", "then", "else")
_KEYWORDS = _STRING | _NUMBER | _OBJECT | _ARRAY | frozenset(_CONDITIONAL)
_ENUM, _NOT, _CONST, _TYPE = (frozenset({keyword}) for keyword in ("enum", "not", "const", "type"))
_COMBINED = frozenset(Criterion)
_ANNOTATIONS = frozenset({"title", "description", "default", "readOnly", "writeOnly"})
#: Not part of the structure of a schema.
_IGNORED = frozenset({"$schema", "$defs", "definitions", "$comment", "examples"})

_INTEGERS = range(-(1 << 31), 1 << 31)


def loader(draft: Draft) -> LoadObject:
    """Return the function that loads an object of a draft."""

    def load_object(loading: Loading, location: Location) -> Recursion[Schema]:
        return _Object(draft, loading, location).load()

    return load_object


class _Object:
    """The loading of one JSON object."""

    def __init__(self, draft: Draft, loading: Loading, location: Location) -> None:
        self._draft = draft
        self._loading = loading
        self._base = location.base
        self._json: dict[str, Any] = location.json
        #: The keywords that no part has used so far.
        self._left = set(self._json)

    def load(self) -> Recursion[Schema]:
        if "$ref" in self._json:
            self._left.discard("$ref")
            reference = self._loading.reference(self._json["$ref"], self._base)
            return replace(reference, annotations=self._annotations()._replace(default=None))
        parts: list[Schema] = []
        for keywords, load_part in (
            (_ENUM, self._enum),
            (_COMBINED, self._combined),
            (_NOT, self._not),
            (_CONST, self._const),
            (_TYPE, self._typed),
            (_KEYWORDS, self._untyped),
        ):
            if not keywords.isdisjoint(self._left):
                parts += yield load_part()
        annotations = self._annotations()
        if not parts:
            return Empty(annotations)
        if len(parts) > 1:
            return Combined(annotations, subschemas=tuple(parts), generated=True)
        part = parts[0] if annotations == NONE else replace(parts[0], annotations=annotations)
        return self._with_contains(part) if isinstance(part, Array) else part

    def _child(self, json: Any) -> Recursion[Schema]:
        return self._loading.child(json, self._base)

    def _maybe(self, keyword: str, *types: type) -> Any:
        self._left.discard(keyword)
        return of_type(self._json, keyword, *types)

    def _integer(self, keyword: str) -> int | None:
        value: int | None = of_type(self._json, keyword, int)
        require(value is None or value in _INTEGERS, f"{keyword} is out of range")
        return value

    def _annotations(self) -> Annotations:
        json = self._json
        if self._draft == DRAFT_7:
            of_type(json, "readOnly", bool)
            of_type(json, "writeOnly", bool)
        self._left -= _ANNOTATIONS | {self._draft.id_keyword}
        unknown = {keyword: json[keyword] for keyword in sorted(self._left - _IGNORED)}
        connect_type = json.get("connect.type")
        return Annotations(
            id=of_type(json, self._draft.id_keyword, str),
            title=of_type(json, "title", str),
            description=of_type(json, "description", str),
            default=text.write(json["default"]) if "default" in json else None,
            connect_type=connect_type if isinstance(connect_type, str) else None,
            unknown=text.write(unknown) if unknown else None,
        )

    def _enum(self) -> Recursion[list[Schema]]:
        return [Enum(values=frozenset(map(text.write, self._maybe("enum", list))))]
        yield

    def _combined(self) -> Recursion[list[Schema]]:
        parts: list[Schema] = []
        for keyword in hashorder.in_set([criterion for criterion in Criterion if criterion in self._json]):
            subschemas = yield self._children(self._maybe(keyword, list))
            parts.append(Combined(criterion=Criterion(keyword), subschemas=tuple(subschemas)))
        return parts

    def _not(self) -> Recursion[list[Schema]]:
        return [Not(schema=(yield self._child(self._maybe("not", dict, bool))))]

    def _const(self) -> Recursion[list[Schema]]:
        if self._draft == DRAFT_4:
            return []
        self._left.discard("const")
        return [Const(value=text.write(self._json["const"]))]
        yield

    def _typed(self) -> Recursion[list[Schema]]:
        types = self._maybe("type", str, list)
        if isinstance(types, str):
            return [(yield self._of_type(types))]
        subschemas: list[Schema] = []
        for name in strings(types, "type"):
            subschemas.append((yield self._of_type(name)))  # noqa: PERF401
        return [Combined(criterion=Criterion.ANY, subschemas=tuple(subschemas))]

    def _of_type(self, name: str) -> Recursion[Any] | Schema:
        """Load the keywords of a type; a schema that contains no others is returned at once."""
        match name:
            case "string":
                return self._string()
            case "integer":
                return replace(self._number(), integer=True)
            case "number":
                return self._number()
            case "boolean":
                return Boolean()
            case "null":
                return Null()
            case "array":
                return self._array()
            case "object":
                return self._object()
        raise SchemaError(f"unknown type: {name}")

    def _untyped(self) -> Recursion[list[Schema]]:
        """Load keywords about a type that `type` does not name."""
        parts: list[Schema] = []
        if self._left & self._supported(_ARRAY, "contains"):
            parts.append(replace((yield self._array()), typed=False))
        if self._left & self._supported(_OBJECT, "propertyNames"):
            parts.append(replace((yield self._object()), typed=False))
        if self._left & _NUMBER:
            parts.append(replace(self._number(), typed=False))
        if self._left & _STRING:
            parts.append(replace(self._string(), typed=False))
        if self._draft == DRAFT_7 and self._left & set(_CONDITIONAL):
            parts.append((yield self._conditional()))
        return parts

    def _supported(self, keywords: frozenset[str], since_draft_6: str) -> frozenset[str]:
        return keywords - {since_draft_6} if self._draft == DRAFT_4 else keywords

    def _string(self) -> String:
        self._left -= _STRING
        expression = of_type(self._json, "pattern", str)
        if expression is not None:
            pattern(expression)
        return String(
            min_length=self._integer("minLength"),
            max_length=self._integer("maxLength"),
            pattern=expression,
            format=of_type(self._json, "format", str),
        )

    def _number(self) -> Number:
        self._left -= _NUMBER
        limits: dict[str, Any] = {}
        for keyword, name in (
            ("exclusiveMinimum", "exclusive_minimum"),
            ("exclusiveMaximum", "exclusive_maximum"),
        ):
            if self._draft == DRAFT_4:
                of_type(self._json, keyword, bool)
            else:
                limits[name] = of_type(self._json, keyword, int, Decimal)
        multiple_of = of_type(self._json, "multipleOf", int, Decimal)
        require(multiple_of is None or multiple_of != 0, "multipleOf should not be 0")
        return Number(
            minimum=of_type(self._json, "minimum", int, Decimal),
            maximum=of_type(self._json, "maximum", int, Decimal),
            multiple_of=multiple_of,
            **limits,
        )

    def _array(self) -> Recursion[Array]:
        self._left -= self._supported(_ARRAY, "contains")
        json = self._json
        array = Array(
            min_items=self._integer("minItems"),
            max_items=self._integer("maxItems"),
            unique=of_type(json, "uniqueItems", bool) or False,
        )
        additional = of_type(json, "additionalItems", bool, dict)
        if isinstance(additional, bool):
            array = replace(array, additional_allowed=additional)
        elif additional is not None:
            array = replace(array, additional=(yield self._child(additional)))
        items = of_type(json, "items", dict, list, *([] if self._draft == DRAFT_4 else [bool]))
        if isinstance(items, list):
            array = replace(array, items=tuple((yield self._children(items))))
        elif items is not None:
            array = replace(array, all_items=(yield self._child(items)))
        if self._draft != DRAFT_4 and "contains" in json:
            array = replace(array, contains=(yield self._child(json["contains"])))
        return array

    def _with_contains(self, array: Array) -> Array:
        numbers: dict[str, Any] = {
            name: self._json.get(keyword)
            for name, keyword in (("min_contains", "minContains"), ("max_contains", "maxContains"))
            if type(self._json.get(keyword)) in (int, Decimal)
        }
        return replace(array, **numbers) if numbers else array

    def _object(self) -> Recursion[Object]:
        self._left -= self._supported(_OBJECT, "propertyNames")
        json = self._json
        found: dict[str, Any] = {}
        named = of_type(json, "properties", dict) or {}
        named = {
            name: value
            for name, value in named.items()
            if name != self._draft.id_keyword or type(value) is dict
        }
        found["properties"] = dict(zip(named, (yield self._children(named.values())), strict=True))
        additional = of_type(json, "additionalProperties", bool, dict)
        if isinstance(additional, bool):
            found["additional_allowed"] = additional
        elif additional is not None:
            found["additional"] = yield self._child(additional)
        by_pattern = of_type(json, "patternProperties", dict) or {}
        schemas = yield self._children(by_pattern.values())
        found["pattern_properties"] = tuple(zip(map(pattern, by_pattern), schemas, strict=True))
        found |= yield self._dependencies()
        if self._draft != DRAFT_4 and "propertyNames" in json:
            found["property_names"] = yield self._child(json["propertyNames"])
        return Object(
            required=frozenset(strings(of_type(json, "required", list) or [], "required")),
            min_properties=self._integer("minProperties"),
            max_properties=self._integer("maxProperties"),
            **found,
        )

    def _dependencies(self) -> Recursion[dict[str, Any]]:
        properties: dict[str, frozenset[str]] = {}
        schemas: dict[str, Schema] = {}
        for name, dependency in (of_type(self._json, "dependencies", dict) or {}).items():
            if not isinstance(dependency, list):
                schemas[name] = yield self._child(dependency)
            elif dependency:
                properties[name] = frozenset(strings(dependency, "dependencies"))
        return {"property_dependencies": properties, "schema_dependencies": schemas}

    def _conditional(self) -> Recursion[Conditional]:
        present = [keyword for keyword in _CONDITIONAL if keyword in self._left]
        self._left.difference_update(present)
        schemas = yield self._children(self._json[keyword] for keyword in present)
        return Conditional(parts=tuple(zip(present, schemas, strict=True)))

    def _children(self, children: Iterable[Any]) -> Recursion[list[Schema]]:
        return self._loading.children(children, self._base)
