"""Time windows, with the rules of Kafka Streams. Durations are milliseconds or `timedelta`s.

`size_ms` is the window size that the serde of windowed keys needs; `grace_ms` is how long after a window's
end records are still accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

Duration = int | timedelta


def milliseconds(duration: Duration, what: str) -> int:
    if isinstance(duration, timedelta):
        return round(duration / timedelta(milliseconds=1))
    if isinstance(duration, bool) or not isinstance(duration, int):
        raise TypeError(f"{what} must be milliseconds or a timedelta, not {duration!r}")
    return duration


def _not_negative(value: int, what: str) -> None:
    if value < 0:
        raise ValueError(f"{what} must not be negative: {value} ms")


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Tumbling windows, or hopping windows with `advance_by`. The start is inclusive, the end exclusive."""

    size_ms: int
    advance_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        if self.size_ms <= 0:
            raise ValueError(f"The window size must be positive: {self.size_ms} ms")
        if not 0 < self.advance_ms <= self.size_ms:
            raise ValueError(
                f"Windows of {self.size_ms} ms must advance by 1 to {self.size_ms} ms, not {self.advance_ms}"
            )
        _not_negative(self.grace_ms, "The grace period")

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> TimeWindows:
        return cls.of_size_and_grace(size, 0)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> TimeWindows:
        size_ms = milliseconds(size, "size")
        return cls(size_ms, size_ms, milliseconds(grace, "grace"))

    def advance_by(self, advance: Duration) -> TimeWindows:
        return replace(self, advance_ms=milliseconds(advance, "advance"))

    def starts(self, timestamp_ms: int) -> range:
        """Return the starts of the windows that contain a timestamp; no window starts before the epoch."""
        first = max(0, timestamp_ms - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return range(first, timestamp_ms + 1, self.advance_ms)


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """A window for every distinct set of records that are at most `time_difference_ms` apart; both ends are
    inclusive (KIP-450)."""

    time_difference_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        _not_negative(self.time_difference_ms, "The time difference")
        _not_negative(self.grace_ms, "The grace period")

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> SlidingWindows:
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> SlidingWindows:
        return cls(milliseconds(difference, "difference"), milliseconds(grace, "grace"))

    @property
    def size_ms(self) -> int:
        return self.time_difference_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions of records that are at most the inactivity gap apart."""

    gap_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        _not_negative(self.gap_ms, "The inactivity gap")
        _not_negative(self.grace_ms, "The grace period")

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> SessionWindows:
        return cls.of_inactivity_gap_and_grace(gap, 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> SessionWindows:
        return cls(milliseconds(gap, "gap"), milliseconds(grace, "grace"))


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """The other record is at most `before_ms` older and at most `after_ms` newer; both ends are inclusive."""

    before_ms: int
    after_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        if self.before_ms + self.after_ms < 0:
            raise ValueError(
                f"The join window would end before its start: {-self.before_ms} to {self.after_ms} ms"
            )
        _not_negative(self.grace_ms, "The grace period")

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> JoinWindows:
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> JoinWindows:
        difference_ms = milliseconds(difference, "difference")
        return cls(difference_ms, difference_ms, milliseconds(grace, "grace"))

    def before(self, difference: Duration) -> JoinWindows:
        return replace(self, before_ms=milliseconds(difference, "before"))

    def after(self, difference: Duration) -> JoinWindows:
        return replace(self, after_ms=milliseconds(difference, "after"))

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms


AggregationWindows = TimeWindows | SlidingWindows | SessionWindows


def takes_null_values(windows: AggregationWindows | None) -> bool:
    """Whether an aggregate accepts null values: Kafka Streams skips them without windows and in sliding
    ones."""
    return isinstance(windows, TimeWindows | SessionWindows)
