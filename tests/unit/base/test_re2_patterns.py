"""Regular expressions of clients: compiled by RE2, refused with the messages of RE2/J."""

from __future__ import annotations

import pytest

from moldau.base.re2_patterns import InvalidPatternError, compile_pattern


def test_pattern_matches_whole_names_only() -> None:
    pattern = compile_pattern("orders-.*")
    assert pattern.fullmatch("orders-1")
    assert not pattern.fullmatch("my-orders-1")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*", "missing argument to repetition operator"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
    ],
)
def test_invalid_pattern_is_refused_with_the_message_of_re2j(expression: str, reason: str) -> None:
    with pytest.raises(InvalidPatternError) as refused:
        compile_pattern(expression)
    assert str(refused.value) == reason
