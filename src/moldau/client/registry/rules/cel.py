"""CEL rules through the package `cel-python` (the extra `moldau[rules]`).

A rule of type CEL sees `message`, the whole value; one of type CEL_FIELD sees `value`, `name`, `fullName`,
`typeName`, `tags` and `message` for each field that has one of the rule's tags (all fields without tags).
An expression may begin with a guard: `guard; expression` leaves values alone for which the guard is false.
`now` is the current time, a time of day the duration since midnight. Numbers of Protobuf's unsigned types are
`uint`, as for Confluent's serializers; larger numbers than 64 bits are `double`.
"""

from __future__ import annotations

import datetime
import math
import uuid
from typing import Any

import celpy
from celpy import celtypes

from moldau.client.registry.rules.functions import FUNCTIONS
from moldau.client.registry.rules.messages import Unsigned, is_message, message_of, to_plain
from moldau.client.registry.rules.rule import CONDITION, Context, Field, FieldWalk, Rule

_EPOCH = datetime.date(1970, 1, 1)
_MIDNIGHT = datetime.datetime.combine(_EPOCH, datetime.time())
_MAX_PROGRAMS = 1000
#: The ends of signed 64-bit integers, and of doubles.
_SIGNED_END = 2**63
_DOUBLE_END = 2**1023


class CelExecutor:
    def __init__(self) -> None:
        self._environment = celpy.Environment()
        self._programs: dict[str, Any] = {}

    def __reduce__(self) -> tuple[type[CelExecutor], tuple[()]]:
        return (CelExecutor, ())

    def run(self, rule: Rule, context: Context, value: Any, walk: FieldWalk) -> Any:
        result = self.evaluate(rule, value, {"message": to_cel(to_plain(value))})
        if rule.kind == CONDITION or result is value:
            return result
        return message_of(result, value) if is_message(value) else result

    def evaluate(self, rule: Rule, value: Any, variables: dict[str, Any]) -> Any:
        """Return the result; the value itself (or true for a condition) if the guard is false."""
        variables = {"now": celtypes.TimestampType(datetime.datetime.now(datetime.UTC)), **variables}
        guard, semicolon, expression = (rule.expr or "").partition(";")
        if not semicolon:
            guard, expression = "", guard
        if guard.strip() and not self._program(guard).evaluate(variables):
            return True if rule.kind == CONDITION else value
        return from_cel(self._program(expression).evaluate(variables))

    def _program(self, expression: str) -> Any:
        program = self._programs.get(expression)
        if program is None:
            if len(self._programs) >= _MAX_PROGRAMS:
                self._programs.clear()
            compiled = self._environment.compile(expression)
            program = self._environment.program(compiled, functions=FUNCTIONS)
            self._programs[expression] = program
        return program


class CelFieldExecutor:
    def __init__(self, cel: CelExecutor) -> None:
        self._cel = cel

    def run(self, rule: Rule, context: Context, value: Any, walk: FieldWalk) -> Any:
        failed: list[str] = []

        def transform(field: Field, data: Any) -> Any:
            if rule.tags and not rule.tags & field.tags:
                return data
            result = self._cel.evaluate(rule, data, _variables(field, data))
            if rule.kind == CONDITION and not result:
                failed.append(field.full_name)
            return data if rule.kind == CONDITION else result

        changed = walk(transform, value)
        return not failed if rule.kind == CONDITION else changed


def _variables(field: Field, data: Any) -> dict[str, Any]:
    return {
        "value": to_cel(data),
        "fullName": celtypes.StringType(field.full_name),
        "name": celtypes.StringType(field.name),
        "typeName": celtypes.StringType(field.type_name),
        "tags": celtypes.ListType([celtypes.StringType(tag) for tag in sorted(field.tags)]),
        "message": to_cel(to_plain(field.message)),
    }


def to_cel(value: Any) -> Any:
    match value:
        case dict():
            pairs = {celtypes.StringType(str(name)): to_cel(one) for name, one in value.items()}
            return celtypes.MapType(pairs)
        case list() | tuple():
            return celtypes.ListType([to_cel(one) for one in value])
        case bool():
            return celtypes.BoolType(value)
        case Unsigned():
            return celtypes.UintType(value)
        case int():
            return _number(value)
        case float():
            return celtypes.DoubleType(value)
        case bytes():
            return celtypes.BytesType(value)
        case str() | uuid.UUID():
            return celtypes.StringType(str(value))
        case datetime.datetime():
            return celtypes.TimestampType(value)
        case datetime.date():
            return celtypes.IntType((value - _EPOCH).days)
        case datetime.time():
            return celtypes.DurationType(datetime.datetime.combine(_EPOCH, value) - _MIDNIGHT)
        case datetime.timedelta():
            return celtypes.DurationType(value)
    return value


def _number(value: int) -> Any:
    """Return an integer of JSON, which may have more than 64 bits."""
    if -_SIGNED_END <= value < _SIGNED_END:
        return celtypes.IntType(value)
    if 0 <= value < 2 * _SIGNED_END:
        return celtypes.UintType(value)
    if abs(value) < _DOUBLE_END:
        return celtypes.DoubleType(value)
    return celtypes.DoubleType(math.inf if value > 0 else -math.inf)


def from_cel(value: Any) -> Any:
    """Return plain Python data, which the encoders take."""
    match value:
        case celtypes.BoolType():
            return bool(value)
        case dict():
            return {str(name): from_cel(one) for name, one in value.items()}
        case list():
            return [from_cel(one) for one in value]
        case celtypes.IntType() | celtypes.UintType():
            return int(value)
        case celtypes.DoubleType():
            return float(value)
        case celtypes.StringType():
            return str(value)
        case celtypes.BytesType():
            return bytes(value)
        case celtypes.DurationType():
            # No encoder takes a duration; a time of day is the time since midnight.
            within = datetime.timedelta() <= value < datetime.timedelta(days=1)
            return (_MIDNIGHT + value).time() if within else value
    return value
