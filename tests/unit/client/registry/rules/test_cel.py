from __future__ import annotations

import datetime
from typing import Any

import pytest

from moldau.client.registry.codecs.protobuf import ProtobufCodec
from moldau.client.registry.rules.cel import CelExecutor, CelFieldExecutor
from moldau.client.registry.rules.rule import WRITE, Context, Rule
from moldau.client.registry.rules.walks import MetadataTags, ProtobufWalk
from moldau.client.registry.types import Schema

CONTEXT = Context(WRITE, Schema("{}"), "s", "t", False, ())
NUMBERS = """syntax = "proto3";
message Numbers {
  uint64 big = 1; uint32 small = 2; int64 plain = 3;
  repeated fixed64 many = 4; map<string, uint64> by_name = 5;
}
"""
LARGEST = 2**64 - 1


def rule(expression: str, kind: str = "CONDITION", type: str = "CEL") -> Rule:
    return Rule.of({"name": "r", "kind": kind, "type": type, "expr": expression})


def evaluate(expression: str, value: Any) -> Any:
    return CelExecutor().run(rule(expression), CONTEXT, value, lambda transform, data: data)


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        (2**63 - 1, "message.n == 9223372036854775807"),
        (-(2**63), "message.n < 0"),
        (2**63, "message.n == 9223372036854775808u"),
        (LARGEST, "message.n > 5u"),
        (2**64, "message.n > 1.0e19"),
        (-(2**70), "message.n < 0.0"),
        (10**400, "message.n > 1.0e300"),
        (-(10**400), "message.n < -1.0e300"),
    ],
    ids=["2^63-1", "-2^63", "2^63", "2^64-1", "2^64", "-2^70", "10^400", "-10^400"],
)
def test_integers_of_any_size_are_compared(value: int, expression: str) -> None:
    assert evaluate(expression, {"n": value, "name": "x"}) is True
    assert evaluate("message.name == 'x'", {"n": value, "name": "x"}) is True


def test_time_of_day_is_the_duration_since_midnight() -> None:
    value = {"at": datetime.time(10, 30), "name": "x"}
    assert evaluate("message.at < duration('11h') && message.at > duration('10h')", value) is True
    whole = CelExecutor().run(rule("message", "TRANSFORM"), CONTEXT, value, lambda transform, data: data)
    assert whole == value


def numbers() -> Any:
    message = ProtobufCodec(NUMBERS, {}).message_class((0,))()
    message.big, message.small, message.plain = LARGEST, 7, -7
    message.many.extend([1, LARGEST])
    message.by_name["a"] = LARGEST
    return message


@pytest.mark.parametrize(
    "expression",
    [
        "message.big == 18446744073709551615u",
        "message.small == 7u && message.plain == -7",
        "message.many.exists(one, one > 9000000000000000000u)",
        "message.by_name['a'] > 1u",
    ],
)
def test_unsigned_numbers_of_protobuf_are_uint(expression: str) -> None:
    assert evaluate(expression, numbers()) is True


def test_message_with_large_numbers_is_transformed() -> None:
    given = numbers()
    unchanged = CelExecutor().run(rule("message", "TRANSFORM"), CONTEXT, given, lambda transform, data: data)
    assert unchanged == given
    walk = ProtobufWalk(MetadataTags(Schema(NUMBERS, "PROTOBUF")))
    guarded = rule("typeName == 'LONG' && name == 'big' ; value - 1u", "TRANSFORM", "CEL_FIELD")
    changed = CelFieldExecutor(CelExecutor()).run(guarded, CONTEXT, numbers(), walk)
    assert (changed.big, changed.small, changed.plain) == (LARGEST - 1, 7, -7)
