"""Parse Avro schemas with the rules and messages of Java's `Schema.Parser`.

A parser keeps the named types of all texts it has parsed, so that a text can use the types of its references.
Rules that only new schemas must follow (names of the specification, valid default values) do not fail the
parse: the first violation is kept in `violation`.
"""

from __future__ import annotations

import re
from typing import Any

from moldau.schemas.avro import names
from moldau.schemas.avro.defaults import DefaultChecks
from moldau.schemas.avro.equality import same
from moldau.schemas.avro.logical import with_logical_type_first
from moldau.schemas.avro.text import write
from moldau.schemas.avro.tree import (
    MISSING,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Named,
    Primitive,
    Properties,
    Record,
    Type,
    Union,
    Unresolved,
    full_name,
    name_of,
)
from moldau.schemas.schema import InvalidSchema

#: Schemas nested deeper are refused: the walks over a tree are recursive.
MAX_DEPTH = 150
_RESERVED = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED = _RESERVED | {"default"}
_FIELD_RESERVED = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS = ("ascending", "descending", "ignore")
_MAX_FIXED = 2**31 - 9
_JAVA_DOUBLE = re.compile(r"\s*([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?))\s*")
_PLAIN = {kind: Primitive(kind) for kind in PRIMITIVES}


class Parser:
    """The named types known so far, and the first violation of the rules for new schemas."""

    def __init__(self) -> None:
        self.violation: str | None = None
        self._types: dict[str, Named] = {}
        self._defaults: list[tuple[Record, Field]] = []
        self._default_checks = DefaultChecks()
        self._unions: list[Union] = []
        #: Whether the last text used types before their definition.
        self.has_unresolved = False
        self._depth = 0

    def parse(self, value: Any) -> Type:
        """Parse a JSON value, and close the references to types defined in it."""
        self._defaults.clear()
        self._default_checks = DefaultChecks()
        self._unions.clear()
        self.has_unresolved = False
        root = self._type(value, None)
        if self.has_unresolved:
            root = _Closing(self._types).closed(root)
            for union in self._unions:
                _check_branches(union)
            self._check_defaults()
        if isinstance(root, Named):
            root = self._types[root.name.full]
        return root

    def _check_defaults(self) -> None:
        """Check the defaults again: their types may have been references to later definitions."""
        for record, field in self._defaults:
            # A record is open while its own fields are checked, so their results are not shared with others.
            self._default_checks.forget()
            self._check_default(record, field)

    def _check_default(self, record: Record, field: Field) -> None:
        if self.violation is None:
            self.violation = self._default_checks.problem(record, field)

    def _violate(self, problem: str | None) -> None:
        if problem and self.violation is None:
            self.violation = problem

    def _type(self, value: Any, namespace: str | None) -> Type:
        if isinstance(value, str):
            return _PLAIN.get(value) or self._find(value, namespace)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidSchema(f"Schema nesting depth exceeds the maximum allowed ({MAX_DEPTH})")
        if isinstance(value, dict):
            parsed = self._object(value, namespace)
        elif isinstance(value, list):
            parsed = self._union(value, namespace)
        else:
            raise InvalidSchema(f"Schema not yet supported: {write(value)}")
        self._depth -= 1
        return parsed

    def _object(self, value: dict[str, Any], namespace: str | None) -> Type:
        kind = _required(value, "type", "No type")
        if kind in PRIMITIVES:
            properties = _properties(value, _RESERVED) if len(value) > 1 else None
            return Primitive(kind, properties) if properties else _PLAIN[kind]
        match kind:
            case "record" | "error":
                return self._record(value, namespace, kind == "error")
            case "enum":
                return self._enum(value, namespace)
            case "array":
                if "items" not in value:
                    raise InvalidSchema(f"Array has no items type: {write(value)}")
                items = self._type(value["items"], namespace)
                return with_logical_type_first(Array(items, _properties(value, _RESERVED)))
            case "map":
                if "values" not in value:
                    raise InvalidSchema(f"Map has no values type: {write(value)}")
                return Map(self._type(value["values"], namespace), _properties(value, _RESERVED))
            case "fixed":
                return self._fixed(value, namespace)
        return self._find(kind, namespace)

    def _find(self, text: str, namespace: str | None) -> Type:
        full = f"{namespace}.{text}" if namespace and "." not in text else text
        found = self._types.get(full) or self._types.get(text)
        if found is None:
            self.has_unresolved = True
            return Unresolved(full)
        return found

    def _union(self, value: list[Any], namespace: str | None) -> Union:
        union = Union([self._type(branch, namespace) for branch in value])
        _check_branches(union)
        self._unions.append(union)
        return union

    def _record(self, value: dict[str, Any], namespace: str | None, is_error: bool) -> Record:
        name = self._name(value, namespace)
        record = Record(name, _text(value, "doc"), is_error)
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {write(value)}")
        by_name = record.by_name
        parsed = [self._field(field, record) for field in fields]
        for position, field in enumerate(parsed):
            if field.name in by_name:
                raise InvalidSchema(_duplicate(record, parsed, position))
            by_name[field.name] = field
        record.fields = parsed
        record.properties = _properties(value, _RESERVED)
        self._define(record, value)
        with_logical_type_first(record)
        return record

    def _field(self, value: Any, record: Record) -> Field:
        name = _required(value, "name", "No field name")
        if "type" not in value:
            raise InvalidSchema(f"No field type: {write(value)}")
        parsed = self._type(value["type"], record.name.namespace)
        order = _order(value["order"]) if "order" in value else "ascending"
        default = value.get("default", MISSING)
        if isinstance(default, str) and parsed.kind in ("float", "double"):
            default = _java_double(default)
        self._check_name(name)
        aliases = _aliases(value) if "aliases" in value else []
        properties = _properties(value, _FIELD_RESERVED)
        field = Field(name, parsed, _text(value, "doc"), default, order, aliases, properties)
        if default is not MISSING:
            self._check_default(record, field)
            self._defaults.append((record, field))
        return field

    def _enum(self, value: dict[str, Any], namespace: str | None) -> Enum:
        name = self._name(value, namespace)
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            raise InvalidSchema(f"Enum has no symbols: {write(value)}")
        default = _text(value, "default")
        seen = set()
        for symbol in symbols:
            self._check_name(symbol if isinstance(symbol, str) else None)
            if symbol in seen:
                raise InvalidSchema(f"Duplicate enum symbol: {symbol}")
            seen.add(symbol)
        if default is not None and default not in seen:
            raise InvalidSchema(
                f"The Enum Default: {default} is not in the enum symbol set: [{', '.join(symbols)}]"
            )
        enum = Enum(name, _text(value, "doc"), symbols, default, _properties(value, _ENUM_RESERVED))
        self._define(enum, value)
        return enum

    def _fixed(self, value: dict[str, Any], namespace: str | None) -> Fixed:
        name = self._name(value, namespace)
        size = value.get("size")
        if type(size) is not int or not -(2**31) <= size < 2**31:
            raise InvalidSchema(f"Invalid or no size: {write(value)}")
        if size < 0:
            raise InvalidSchema(f"Malformed data. Length is negative: {size}")
        if size > _MAX_FIXED:
            raise InvalidSchema(f"Cannot read arrays longer than {_MAX_FIXED} bytes in Java library")
        fixed = Fixed(name, _text(value, "doc"), size, _properties(value, _RESERVED))
        self._define(fixed, value)
        return fixed

    def _name(self, value: dict[str, Any], namespace: str | None) -> Name:
        space = _text(value, "namespace")
        name = name_of(_required(value, "name", "No name in schema"), namespace if space is None else space)
        self._check_name(name.simple)
        if name.full in PRIMITIVES:
            raise InvalidSchema(f"Schemas may not be named after primitives: {name.full}")
        return name

    def _check_name(self, name: str | None) -> None:
        if name is None or names.strict_problem(name):
            if found := names.problem(name):
                raise InvalidSchema(found)
            self._violate(names.strict_problem(name or ""))

    def _define(self, named: Named, value: dict[str, Any]) -> None:
        """Add a named type; a second definition is allowed if it is equal."""
        if "aliases" in value:
            aliases = [name_of(alias, named.name.namespace) for alias in _aliases(value)]
            named.aliases = list(dict.fromkeys(aliases))
            for alias in aliases:
                self._violate(names.strict_problem(alias.simple))
        if named.name.namespace is not None:
            self._violate(names.namespace_problem(named.name.full))
        known = self._types.setdefault(named.name.full, named)
        if known is not named and not same(known, named):
            raise InvalidSchema(f"Can't redefine: {named.name.full}")


class _Closing:
    """Replaces the references to types defined later by the types."""

    def __init__(self, types: dict[str, Named]) -> None:
        self._types = types
        self._seen: set[int] = set()

    def closed(self, root: Type) -> Type:
        if isinstance(root, Unresolved):
            if root.full not in self._types:
                raise InvalidSchema("Unknown schema: org.apache.avro.compiler.UnresolvedSchema_0")
            return self._types[root.full]
        for named in list(self._types.values()):
            self._close(named)
        return self._close(root)

    def _close(self, node: Type) -> Type:
        match node:
            case Unresolved():
                if node.full not in self._types:
                    raise InvalidSchema(f"Undefined schema: {node.full}")
                return self._types[node.full]
            case Record() if id(node) not in self._seen:
                self._seen.add(id(node))
                for field in node.fields:
                    field.type = self._close(field.type)
            case Array():
                node.items = self._close(node.items)
            case Map():
                node.values = self._close(node.values)
            case Union():
                node.branches = [self._close(branch) for branch in node.branches]
        return node


def _check_branches(union: Union) -> None:
    seen = set()
    for branch in union.branches:
        if isinstance(branch, Union):
            raise InvalidSchema("Nested union: a union must not contain another union")
        if isinstance(branch, Unresolved):
            continue
        name = full_name(branch)
        if name in seen:
            raise InvalidSchema(f"Duplicate in union:{name}")
        seen.add(name)


def _duplicate(record: Record, fields: list[Field], position: int) -> str:
    name = fields[position].name
    first = next(index for index, field in enumerate(fields) if field.name == name)
    texts = [f"{name} type:{fields[index].type.kind.upper()} pos:{index}" for index in (position, first)]
    return f"Duplicate field {name} in record {record.name.full}: {texts[0]} and {texts[1]}."


def _properties(value: dict[str, Any], reserved: frozenset[str]) -> Properties:
    if value.keys() <= reserved:
        return {}
    return {key: item for key, item in value.items() if key not in reserved}


def _text(value: dict[str, Any], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def _required(value: Any, key: str, problem: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise InvalidSchema(f"{problem}: {write(value)}")
    return found


def _order(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidSchema(f"order not a string: {write(value)}")
    order = value.lower()
    if order not in _ORDERS:
        raise InvalidSchema(f"No enum constant org.apache.avro.Schema.Field.Order.{value.upper()}")
    return order


def _aliases(value: dict[str, Any]) -> list[str]:
    aliases = value["aliases"]
    if not isinstance(aliases, list):
        raise InvalidSchema(f"aliases not an array: {write(value)}")
    for alias in aliases:
        if not isinstance(alias, str):
            raise InvalidSchema(f"alias not a string: {write(alias)}")
    return list(dict.fromkeys(aliases))


def _java_double(text: str) -> float:
    match = _JAVA_DOUBLE.fullmatch(text)
    if match is None:
        raise InvalidSchema(f'For input string: "{text}"' if text.strip() else "empty String")
    return float(match[1].rstrip("fFdD") if match[1][-1] in "fFdD" else match[1])
