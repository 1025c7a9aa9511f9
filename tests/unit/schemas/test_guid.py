"""The GUID of a schema: a hash over everything that makes it another schema."""

from __future__ import annotations

from hashlib import md5
from typing import Any
from uuid import UUID

import pytest

from moldau.schemas.guid import guid
from moldau.schemas.schema import Reference

_TEXT = '{"type":"string"}'
_RULE = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "size(x) > 0"}


def _hashed(*parts: bytes) -> str:
    return str(UUID(bytes=md5(b"".join(parts), usedforsecurity=False).digest()))


def test_guid_of_a_text() -> None:
    assert guid(_TEXT) == _hashed(_TEXT.encode())


def test_references_are_hashed_with_their_version() -> None:
    references = [Reference("a.proto", "a", 1), Reference("b.proto", "b", -1)]
    expected = (b"a.proto", b"a", b"\0\0\0\1", b"b.proto", b"b", b"\xff\xff\xff\xff")
    assert guid(_TEXT, references) == _hashed(_TEXT.encode(), *expected)


def test_metadata_are_hashed_in_the_order_of_their_keys() -> None:
    metadata = {"properties": {"b": "2", "a": "1"}, "tags": {"p": ["U", "T"]}, "sensitive": ["b"]}
    expected = (b"\1", b"p", b"T", b"U", b"a", b"1", b"b", b"2", b"b")
    assert guid(_TEXT, metadata=metadata) == _hashed(_TEXT.encode(), *expected)


def test_rules_are_hashed_field_by_field() -> None:
    expected = (b"\1", b"r", b"CONDITION", b"WRITE", b"CEL", b"size(x) > 0")
    assert guid(_TEXT, rule_set={"domainRules": [_RULE]}) == _hashed(_TEXT.encode(), *expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"metadata": {}}),
        ({"metadata": {}}, {"metadata": {"properties": {"a": "b"}}}),
        (
            {"rule_set": {"domainRules": [_RULE]}},
            {"rule_set": {"domainRules": [{**_RULE, "disabled": True}]}},
        ),
        ({"references": [Reference("n", "s", 1)]}, {"references": [Reference("n", "s", 2)]}),
    ],
)
def test_different_schemas_have_different_guids(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert guid(_TEXT, **first) != guid(_TEXT, **second)


def test_characters_that_utf8_cannot_represent_are_question_marks() -> None:
    assert guid("\ud800") == guid("?")
