"""Parts of a definition."""

from __future__ import annotations

import pytest

from moldau.pipelines.runtime.definition import AtMost


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20", AtMost(20)), ("5%", AtMost(5, True)), ("0.5 %", AtMost(0.5, True)), ("0", AtMost(0))],
)
def test_at_most_is_a_number_of_rows_or_a_percentage(text: str, expected: AtMost) -> None:
    assert AtMost.parse(text) == expected


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "101%", "%", "5 rows"])
def test_invalid_at_most(text: str) -> None:
    assert AtMost.parse(text) is None
