"""Formats without a schema, in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.http.errors import ApiError
from moldau.rest.formats import plain


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
    ("kind", "stored"), [("json", b"{"), ("json", b"NaN"), ("json", b"\xff"), ("string", b"\xff")]
)
def test_bytes_of_another_format_are_refused(kind: str, stored: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        plain.decode(kind, stored)
    assert refused.value.error_code == 40801
