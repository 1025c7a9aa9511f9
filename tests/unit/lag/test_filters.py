"""Names and regular expressions select groups and topics."""

from __future__ import annotations

import pytest

from moldau.base.errors import KafkaError
from moldau.lag.filters import ALL_NAMES, NameFilter


@pytest.mark.parametrize(
    ("include", "exclude", "allowed", "refused"),
    [
        ([], [], ["a", ""], []),
        (["billing"], [], ["billing"], ["billing-2", "xbilling"]),
        (["billing.*", "a"], [], ["billing", "billing-2", "a"], ["b"]),
        ([], ["console-.*"], ["billing"], ["console-consumer-1"]),
        (["b.*"], ["b-test"], ["b-prod"], ["b-test", "c"]),
        (["a+b"], [], ["a+b", "aab"], ["ab+"]),
    ],
)
def test_allows(include: list[str], exclude: list[str], allowed: list[str], refused: list[str]) -> None:
    names = NameFilter(include, exclude)
    assert [each for each in allowed + refused if names.allows(each)] == allowed
    assert ALL_NAMES.allows("anything")


def test_an_invalid_expression_is_refused() -> None:
    with pytest.raises(KafkaError, match="is not a name or a regular expression"):
        NameFilter(["("])
