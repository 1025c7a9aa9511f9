"""Whether the default value of a field is valid, as Java's Avro decides for new schemas.

A type that is defined later counts as a record without fields, so a field of it accepts only an object.

The defaults of a record's fields complete an object without them, so defaults refer to further defaults: a
record and an object are checked once, the number of checks is bounded, and the Python stack is not used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moldau.schemas.avro.printer import written
from moldau.schemas.avro.text import write
from moldau.schemas.avro.tree import MISSING, Array, Field, Map, Record, Type, Union
from moldau.schemas.schema import InvalidSchema
from moldau.schemas.trampoline import Recursion, run

#: How many pairs of a type and a value are checked at most per schema, a matter of about a second.
_MAX_CHECKS: Final = 500_000
_RANGES = {"int": 2**31, "long": 2**63}
_TEXTS = frozenset({"string", "bytes", "enum", "fixed"})
_NUMBERS = frozenset({"float", "double"})


class DefaultChecks:
    """The checks of the defaults of one schema, with the results that its fields share."""

    def __init__(self) -> None:
        self._count = 0
        #: Whether an object is valid for a record. The objects are parts of the schema, so ids are unique.
        self._known: dict[tuple[Record, int], bool] = {}
        self._open: set[Record] = set()

    def forget(self) -> None:
        """Drop the results, because types have changed."""
        self._known.clear()

    def problem(self, record: Record, field: Field) -> str | None:
        """Return what is wrong with the default value of a field of `record`."""
        self._open = {record}
        try:
            if run(self._valid(field.type, field.default)):
                return None
        except InvalidSchema as error:
            return str(error)
        return f"Invalid default for field {field.name}: {write(field.default)} not a {written(field.type)}"

    def _valid(self, node: Type, value: Any) -> Recursion[bool]:
        self._count += 1
        if self._count > _MAX_CHECKS:
            raise InvalidSchema(f"The default values need more than {_MAX_CHECKS} checks")
        match node:
            case Array():
                return self._all(node.items, value if isinstance(value, list) else None)
            case Map():
                return self._all(node.values, value.values() if isinstance(value, dict) else None)
            case Union():
                return self._any(node.branches, value)
            case Record() if isinstance(value, dict):
                return self._record(node, value)
        return _valid_leaf(node.kind, value)  # type: ignore[return-value]

    def _all(self, node: Type, values: Iterable[Any] | None) -> Recursion[bool]:
        if values is None:
            return False
        for value in values:
            is_valid = yield self._valid(node, value)
            if not is_valid:
                return False
        return True

    def _any(self, branches: Iterable[Type], value: Any) -> Recursion[bool]:
        if value is MISSING:
            return False
        for branch in branches:
            is_valid = yield self._valid(branch, value)
            if is_valid:
                return True
        return False

    def _record(self, record: Record, value: dict[str, Any]) -> Recursion[bool]:
        """Check the fields; the defaults of a record must not contain the record itself."""
        if record in self._open:
            raise InvalidSchema("Schema fields not set yet")
        key = (record, id(value))
        if key not in self._known:
            self._known[key] = yield self._fields(record, value)
        return self._known[key]

    def _fields(self, record: Record, value: dict[str, Any]) -> Recursion[bool]:
        for field in record.fields:
            if field.name in value:
                # A value is finite, so a record may occur in it again.
                is_valid = yield self._valid(field.type, value[field.name])
            else:
                self._open.add(record)
                is_valid = yield self._valid(field.type, field.default)
                self._open.discard(record)
            if not is_valid:
                return False
        return True


def _valid_leaf(kind: str, value: Any) -> bool:
    if kind in _TEXTS:
        return isinstance(value, str)
    if kind in _RANGES:
        return type(value) is int and -_RANGES[kind] <= value < _RANGES[kind]
    if kind in _NUMBERS:
        return type(value) in (int, float)
    if kind == "record":
        return isinstance(value, dict)
    return isinstance(value, bool) if kind == "boolean" else value is None
