"""The iteration order of Java's hash sets and maps."""

from __future__ import annotations

import pytest

from moldau.schemas import hashorder


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 0), ("a", 97), ("Aa", 2112), ("BB", 2112), ("é", 233), ("😀", 1772899), (-1, 0xFFFFFFFF), (17, 17)],
)
def test_hash_codes(value: str | int, expected: int) -> None:
    assert hashorder.java_hash(value) == expected


def test_small_numbers_are_in_the_order_of_their_buckets() -> None:
    assert hashorder.in_set([2, 17, 0, 16, 1]) == [0, 16, 17, 1, 2]


def test_texts_of_one_bucket_keep_their_order() -> None:
    assert hashorder.in_set(["BB", "Aa"]) == ["BB", "Aa"]
    assert hashorder.in_set(["Aa"], ["BB", "Aa"]) == ["Aa", "BB"]


def test_table_of_a_map_grows_with_its_keys() -> None:
    assert hashorder.in_grown_map([16, 0, *range(1, 11)])[:2] == [16, 0]
    assert hashorder.in_grown_map([16, 0, *range(1, 12)])[:2] == [0, 1]
