"""Values of requests that Kafka's clients can take."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.rest.values import INT32, INT64, is_number, is_text, milliseconds, natural, quoted_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("2147483647", INT32),
        ("2147483648", None),
        ("", None),
        ("-1", None),
        (" 1", None),
        ("1_0", None),
        ("²", None),
        ("٣", None),
        ("9" * 5000, None),
    ],
)
def test_natural(text: str, number: int | None) -> None:
    assert natural(text, INT32) == number


@pytest.mark.parametrize("value", [True, -1, 1 << 63, 1.0, "1", None, []])
def test_values_that_are_no_numbers(value: Any) -> None:
    assert is_number(INT64, INT64)
    assert not is_number(value, INT64)


@pytest.mark.parametrize("value", ["\ud800", "a\0b", None, 1, []])
def test_values_that_are_no_text(value: Any) -> None:
    assert is_text("é😀")
    assert not is_text(value)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01T00:00:01.001Z", 1001),
        ("2021-02-05T19:14:42.123+01:00", 1612548882123),
        ("1970-01-02", 86_400_000),
        ("0001-01-01T00:00:00+23:59", -62135683140000),
    ],
)
def test_milliseconds(text: str, time: int) -> None:
    assert milliseconds(text) == time


@pytest.mark.parametrize("text", ["", "soon", "1e999", "10000-01-01", "\ud800"])
def test_texts_that_are_no_times(text: str) -> None:
    with pytest.raises(ValueError):
        milliseconds(text)


def test_numbers_may_be_in_quotes() -> None:
    assert [quoted_number(each, INT32) for each in (7, "7", " 7 ")] == [7, 7, 7]
    for wrong in ("", "-1", "1.0", str(INT32 + 1), True, 1.0, None, []):
        with pytest.raises(ValueError):
            quoted_number(wrong, INT32)
