"""Recent results are bounded in number and in size."""

from __future__ import annotations

from moldau.registry.state.recent import Recent


def test_the_result_used_longest_ago_is_removed() -> None:
    recent: Recent[int] = Recent(most=2, largest=100)
    recent.put("a", 1, 1)
    recent.put("b", 2, 1)
    assert recent.get("a") == 1
    recent.put("c", 3, 1)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_results_are_bounded_in_size_but_one_is_always_kept() -> None:
    recent: Recent[int] = Recent(most=100, largest=10)
    recent.put("a", 1, 6)
    recent.put("b", 2, 6)
    assert (recent.get("a"), recent.get("b")) == (None, 2)
    recent.put("c", 3, 50)
    assert (recent.get("b"), recent.get("c"), len(recent)) == (None, 3, 1)
    recent.put("c", 4, 5)
    recent.put("d", 5, 5)
    assert (recent.get("c"), recent.get("d")) == (4, 5)
