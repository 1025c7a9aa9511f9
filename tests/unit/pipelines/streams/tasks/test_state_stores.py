"""The state stores of processors."""

from __future__ import annotations

import pytest

from moldau.pipelines.streams.dsl.serdes import Serdes, Window, Windowed
from moldau.pipelines.streams.dsl.stores import Stores
from moldau.pipelines.streams.tasks.state import MemoryMap
from moldau.pipelines.streams.tasks.state_stores import KeyValueStore, SessionStore, WindowStore, open_store

TEXT, LONG = Serdes.string(), Serdes.long()


COUNTS = Stores.key_value_store("counts", TEXT, LONG)


def test_key_value_store() -> None:
    store = open_store(COUNTS, MemoryMap())
    assert isinstance(store, KeyValueStore)
    for number, key in enumerate(["b", "a", "ab", "c"]):
        store.put(key, number)
    assert list(store.all()) == [("a", 1), ("ab", 2), ("b", 0), ("c", 3)]
    assert list(store.range("ab", "b")) == [("ab", 2), ("b", 0)]
    assert list(store.prefix_scan(b"a")) == [("a", 1), ("ab", 2)]
    assert (store.put_if_absent("a", 9), store.put_if_absent("z", 9), store.get("z")) == (1, None, 9)
    assert (store.delete("a"), store.get("a"), store.approximate_num_entries()) == (1, None, 4)


def test_window_store_drops_windows_out_of_retention() -> None:
    store = open_store(Stores.window_store("w", 100, 10, TEXT, LONG), MemoryMap())
    assert isinstance(store, WindowStore)
    for start in (0, 10, 20):
        store.put("a", start, start)
    store.put("b", 7, 10)
    assert store.fetch("a", 10) == 10
    assert list(store.fetch("a", 5, 20)) == [(10, 10), (20, 20)]
    assert list(store.fetch_all(10, 10)) == [
        (Windowed("a", Window(10, 20)), 10),
        (Windowed("b", Window(10, 20)), 7),
    ]
    store.put("a", None, 10)
    assert store.fetch("a", 10) is None
    store.put("a", 5, 110)
    assert [window.window.start for window, _ in store.all()] == [20, 110, 10]
    with pytest.raises(ValueError, match="w: "):
        Stores.window_store("w", 5, 10, TEXT, LONG)


def test_session_store() -> None:
    store = open_store(Stores.session_store("s", 1000, TEXT, LONG), MemoryMap())
    assert isinstance(store, SessionStore)
    first, second = Windowed("a", Window(0, 10)), Windowed("a", Window(50, 60))
    store.put(first, 1)
    store.put(second, 2)
    assert list(store.fetch("a")) == [(first, 1), (second, 2)]
    assert list(store.find_sessions("a", 11, 100)) == [(second, 2)]
    assert store.fetch_session("a", 0, 10) == 1
    store.remove(first)
    assert list(store.fetch("a")) == [(second, 2)]
    assert set(store.changes()) == {
        b"a" + bytes(7) + b"\x0a" + bytes(8),
        b"a" + bytes(7) + b"<" + bytes(7) + b"2",
    }
