from __future__ import annotations

from moldau.base.clock import ManualClock
from moldau.replication.throttles import Throttle, throttled_partitions


class TestThrottle:
    def test_throttle_measures_the_rate_over_its_windows(self) -> None:
        clock = ManualClock()
        throttle = Throttle(clock, lambda: 100.0, lambda: (3, 1))
        assert not throttle.is_exceeded()
        throttle.record(100)
        assert not throttle.is_exceeded()
        throttle.record(150)
        assert throttle.is_exceeded()
        clock.advance(2000)
        assert throttle.is_exceeded()
        clock.advance(600)
        assert not throttle.is_exceeded(), "250 bytes in 2.6 seconds"
        clock.advance(10_000)
        throttle.record(101)
        assert throttle.is_exceeded(), "what was sent long ago does not count any more"

    def test_throttle_covers_only_the_listed_replicas_of_this_broker(self) -> None:
        throttle = Throttle(ManualClock(), lambda: 1.0, lambda: (3, 1))
        throttle.set_replicas("some", "0:1, 1:2,2:1", 1)
        throttle.set_replicas("all", "*", 1)
        throttle.set_replicas("others", "0:2", 1)
        assert [throttle.covers("some", index) for index in (0, 1, 2)] == [True, False, True]
        assert throttle.covers("all", 7)
        assert not throttle.covers("others", 0)
        throttle.set_replicas("all", None, 1)
        assert not throttle.covers("all", 7)

    def test_wildcard_throttles_all_partitions_and_empty_none(self) -> None:
        assert throttled_partitions("*", 1) is None
        assert throttled_partitions("", 1) == frozenset()
