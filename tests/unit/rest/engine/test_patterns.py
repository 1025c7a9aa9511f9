"""Patterns of subscriptions: translated for librdkafka, refused if they are too expensive."""

from __future__ import annotations

import pytest

from moldau.http.errors import ApiError
from moldau.rest.engine.patterns import subscription_of


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("orders.*", "^(orders.*)$"),
        (r"a\d+", "^(a[0-9]+)$"),
        (r"(?:a|b)\.\w", r"^((a|b)\.[A-Za-z0-9_])$"),
        (r"[\w(?:]+\\d", r"^([\w(?:]+\\d)$"),
    ],
)
def test_translation(pattern: str, name: str) -> None:
    assert subscription_of(pattern) == name


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?=a)", "x" * 1001, "(((a{1,100}){1,100}){1,100})"])
def test_refused(pattern: str) -> None:
    with pytest.raises(ApiError) as refused:
        subscription_of(pattern)
    assert refused.value.status == 422
