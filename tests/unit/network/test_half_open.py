"""The number and the age of connections without login are bounded."""

from __future__ import annotations

from typing import Any

from moldau.network.half_open import HalfOpenConnections


class FakeConnection:
    peer_host = "10.0.0.1"

    def __init__(self) -> None:
        self.aborted = False
        self.buffer_bytes = 100

    def abort(self) -> None:
        self.aborted = True


def connections(half_open: HalfOpenConnections, count: int, now: float = 0.0) -> list[Any]:
    made: list[Any] = [FakeConnection() for _ in range(count)]
    for each in made:
        half_open.opened(each, now)
    return made


def test_the_oldest_makes_room_for_a_new_one() -> None:
    half_open = HalfOpenConnections(max_connections=3)
    made = connections(half_open, 5)
    assert [each.aborted for each in made] == [True, True, False, False, False]
    assert len(half_open) == 3


def test_connections_expire_in_order_of_arrival() -> None:
    half_open = HalfOpenConnections(max_seconds=10)
    (first,) = connections(half_open, 1, now=0)
    (second,) = connections(half_open, 1, now=5)
    half_open.expire(now=11)
    assert first.aborted and not second.aborted
    half_open.expire(now=16)
    assert second.aborted
    assert len(half_open) == 0


def test_closed_connections_are_forgotten() -> None:
    half_open = HalfOpenConnections()
    (gone,) = connections(half_open, 1)
    half_open.forget(gone)
    half_open.forget(gone)
    assert len(half_open) == 0


def test_the_largest_are_closed_if_all_buffers_together_are_too_large() -> None:
    half_open = HalfOpenConnections(max_buffer_bytes=1000)
    small, large, known = connections(half_open, 3)
    large.buffer_bytes, known.buffer_bytes = 950, 5000
    half_open.forget(known)
    half_open.expire(now=1)
    assert (small.aborted, large.aborted, known.aborted) == (False, True, False)
    half_open.expire(now=2)
    assert not small.aborted
