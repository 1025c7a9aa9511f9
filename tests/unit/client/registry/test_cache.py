from __future__ import annotations

import pickle
import time

from moldau.base.clock import ManualClock
from moldau.client.registry.cache import BoundedCache


def test_least_recently_used_entry_leaves_first() -> None:
    cache = BoundedCache(2, time.monotonic)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


def test_entries_expire() -> None:
    clock = ManualClock()
    cache = BoundedCache(10, clock.monotonic)
    cache.put("short", 1, 5)
    cache.put("forever", 2)
    clock.advance(4_999)
    assert cache.get("short") == 1
    clock.advance(1)
    assert cache.get("short") is None
    assert cache.get("forever") == 2


def test_copy_in_another_process_is_empty() -> None:
    cache = BoundedCache(2, time.monotonic)
    cache.put("a", 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert len(copy) == 0
