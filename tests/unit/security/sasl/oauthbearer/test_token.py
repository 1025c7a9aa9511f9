"""Tokens as text and their claims."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from moldau.security.sasl.oauthbearer.token import (
    MAX_TOKEN_LENGTH,
    InvalidToken,
    read_object,
    scope_claim,
    sections,
    text_claim,
    time_claim,
)


def section(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_section_may_use_either_alphabet_and_padding() -> None:
    value = {"k": "?>~\xff\xfe??"}
    text = json.dumps(value, ensure_ascii=False).encode()
    for encode in (base64.urlsafe_b64encode, base64.b64encode):
        assert read_object(encode(text).decode()) == value
        assert read_object(encode(text).rstrip(b"=").decode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "a",
        section([1]),
        section("text"),
        base64.b64encode(b'{"a":NaN}').decode(),
        base64.b64encode(b"\xff\xfe{}").decode(),
        base64.b64encode(b"[" * 50_000).decode(),
        base64.b64encode(b'{"a":' * 50_000).decode(),
    ],
    ids=range(9),
)
def test_other_sections_are_refused(text: str) -> None:
    with pytest.raises(InvalidToken):
        read_object(text)


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c.d", "." * 1000, "a" * MAX_TOKEN_LENGTH + "..."])
def test_a_token_has_three_sections(text: str) -> None:
    with pytest.raises(InvalidToken):
        sections(text)


@pytest.mark.parametrize("value", [None, "1", True, [], {}, -1, float("inf"), 1e300, 10**400])
def test_times_are_numbers_in_range(value: Any) -> None:
    with pytest.raises(InvalidToken, match="exp"):
        time_claim({"exp": value}, "exp", required=True)


def test_times_may_have_fractions() -> None:
    assert time_claim({"exp": 12.3456}, "exp", required=True) == 12_346
    assert time_claim({}, "iat", required=False) is None


@pytest.mark.parametrize("value", [None, "", "  ", 1, ["a"]])
def test_text_is_not_blank(value: Any) -> None:
    with pytest.raises(InvalidToken, match="sub"):
        text_claim({"sub": value}, "sub")


def test_scopes_are_text_or_a_list() -> None:
    assert scope_claim({}, "scope") == frozenset()
    assert scope_claim({"scope": " a b "}, "scope") == {"a b"}
    assert scope_claim({"scope": ["a", " b", ""]}, "scope") == {"a", "b"}
    with pytest.raises(InvalidToken):
        scope_claim({"scope": [1]}, "scope")


@pytest.mark.parametrize("seed", range(10))
def test_random_tokens_are_read_or_refused(seed: int) -> None:
    source = random.Random(seed)
    good = f"{section({'alg': 'none'})}.{section({'sub': 'alice', 'exp': 12})}."
    for _ in range(300):
        text = list(good)
        for _ in range(source.randrange(1, 6)):
            text[source.randrange(len(text))] = chr(source.randrange(1, 0x250))
        try:
            header, claims, _ = sections("".join(text))
            read_object(header)
            read_object(claims)
        except InvalidToken:
            continue
