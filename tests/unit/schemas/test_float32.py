"""Numbers of 32-bit precision."""

from __future__ import annotations

import pytest

from moldau.schemas import float32


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, 0.1),
        (1.5, 1.5),
        (16777217.0, 16777216.0),
        (1e40, float("inf")),
        (-1e40, float("-inf")),
        (0.0, 0.0),
    ],
)
def test_shortest_number_of_the_same_value(value: float, expected: float) -> None:
    assert float32.shortest(value) == expected


def test_rounded_number_has_32_bits() -> None:
    assert float32.rounded(0.1) == 0.10000000149011612
