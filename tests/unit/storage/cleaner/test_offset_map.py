"""The cleaner's offset map, compared with a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.storage.cleaner.offset_map import ENTRY_SIZE, OffsetMap


@given(st.lists(st.binary(max_size=6)), st.lists(st.binary(max_size=6)))
def test_offset_map_keeps_the_last_offset_of_each_key(keys: list[bytes], others: list[bytes]) -> None:
    offset_map = OffsetMap(10_000, 0.9)
    model: dict[bytes, int] = {}
    for start in range(0, len(keys), 3):
        entries = list(enumerate(keys[start : start + 3], start))
        assert offset_map.put_all((key, offset) for offset, key in entries) is None
        model.update((key, offset) for offset, key in entries)
    assert offset_map.size == len(model)
    wanted = [*keys, *others]
    assert offset_map.get_all(wanted) == [model.get(key, -1) for key in wanted]


def test_full_offset_map_accepts_only_known_keys() -> None:
    offset_map = OffsetMap(100 * ENTRY_SIZE, 0.5)
    keys = [str(number).encode() for number in range(offset_map.capacity)]
    assert offset_map.put_all((key, 1) for key in keys) is None
    assert offset_map.put_all([(keys[0], 2), (b"new", 3), (keys[0], 4)]) == 3
    assert offset_map.get_all([b"new", keys[0]]) == [-1, 2]
    assert offset_map.size == offset_map.capacity
    assert 0.4 < offset_map.utilization <= 0.5


def test_offset_map_finds_all_keys_at_its_load_limit() -> None:
    offset_map = OffsetMap(1000 * ENTRY_SIZE, 1.0)
    keys = [str(number).encode() for number in range(offset_map.capacity)]
    assert offset_map.put_all((key, offset) for offset, key in enumerate(keys)) is None
    assert offset_map.get_all(keys) == list(range(len(keys)))
    assert offset_map.get_all([b"absent"]) == [-1]


def test_offsets_without_a_key_are_ignored() -> None:
    offset_map = OffsetMap(1000, 0.9)
    assert offset_map.put_all([(None, 1), (b"a", 2)]) is None
    assert offset_map.get_all([None, b"a"]) == [-1, 2]
    assert offset_map.size == 1


def test_offset_map_memory_is_bounded_and_allocated_on_demand() -> None:
    assert OffsetMap(1_000_000, 0.9).capacity * ENTRY_SIZE <= 1_000_000
    small = OffsetMap(128 * 1024 * 1024, 0.9, expected_keys=100)
    assert 100 <= small.capacity < 200


def test_too_small_dedupe_buffer_is_refused_with_the_config_name() -> None:
    with pytest.raises(ValueError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        OffsetMap(ENTRY_SIZE, 0.9)
