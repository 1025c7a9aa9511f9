"""Formats without a schema, in both directions."""

from __future__ import annotations

import math
from typing import Any

import pytest

from moldau.http.asgi import encode_json
from moldau.http.errors import ApiError
from moldau.rest.formats import plain
from moldau.rest.request import parse


@pytest.mark.parametrize(
    ("kind", "data", "stored"),
    [
        ("binary", "AP8=", b"\x00\xff"),
        ("binary", "", b""),
        ("json", {"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'.encode()),
        ("json", "\ud800", b'"\\ud800"'),
        ("string", "é", "é".encode()),
        ("json", None, None),
    ],
)
def test_both_directions(kind: str, data: Any, stored: bytes | None) -> None:
    assert plain.encode(kind, data) == stored
    assert plain.decode(kind, stored) == data


@pytest.mark.parametrize(("kind", "data"), [("binary", "A"), ("binary", "é"), ("binary", 1), ("string", 1)])
def test_data_of_another_format_is_refused(kind: str, data: Any) -> None:
    with pytest.raises(ApiError) as refused:
        plain.encode(kind, data)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("kind", "stored"),
    [("json", b"{"), ("json", b"NaN"), ("json", b"-1e999"), ("json", b"\xff"), ("string", b"\xff")],
)
def test_bytes_of_another_format_are_refused(kind: str, stored: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        plain.decode(kind, stored)
    assert refused.value.error_code == 40801


def test_numbers_out_of_range_are_refused() -> None:
    assert plain.load("1e308") == 1e308
    for text in ("1e999", "[-1e999]", "1" + "0" * 400 + ".0"):
        with pytest.raises(plain.NumberOutOfRange):
            plain.load(text)
        with pytest.raises(ApiError) as refused:
            parse(text)
        assert (refused.value.status, refused.value.error_code) == (422, 422)
    with pytest.raises(ValueError):
        encode_json(math.inf)


def test_data_that_is_nested_too_deeply_is_refused() -> None:
    data: list[Any] = []
    for _ in range(100_000):
        data = [data]
    for kind, status in (("json", 422), ("binary", 400), ("string", 400)):
        with pytest.raises(ApiError) as refused:
            plain.encode(kind, data)
        assert refused.value.status == status
