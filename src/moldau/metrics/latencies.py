"""Durations in log-scaled buckets: quantiles of the last minutes, without a sample being kept.

A bucket is an eighth of a power of two wide, so a quantile is exact to about 6 %. Durations are counted in
microseconds up to two minutes. `rotate`, called once a minute, begins a new generation; quantiles cover the
present and the last `GENERATIONS` ones.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from operator import add
from typing import Final

BUCKETS: Final = 200
#: Past generations that count for quantiles: about five minutes, as in Kafka.
GENERATIONS: Final = 4
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_SUB_BUCKET_BITS: Final = 3
_MAX_US: Final = (1 << 27) - 1


def bucket_of(microseconds: int) -> int:
    """Return the bucket of a duration: exact below 16 µs, then eight buckets for each power of two."""
    if microseconds > _MAX_US:
        microseconds = _MAX_US
    shift = microseconds.bit_length() - 1 - _SUB_BUCKET_BITS
    return microseconds if shift <= 0 else (shift << _SUB_BUCKET_BITS) + (microseconds >> shift)


def _middle_us(bucket: int) -> float:
    shift = (bucket >> _SUB_BUCKET_BITS) - 1
    if shift <= 0:
        return float(bucket)
    first = ((bucket & 7) + 8) << shift
    return first + ((1 << shift) - 1) / 2


_MIDDLES_MS: Final = tuple(_middle_us(bucket) / 1000 for bucket in range(BUCKETS))


class Latencies:
    """`counts` is incremented in place by the recorder: `counts[bucket_of(us)] += 1`."""

    __slots__ = ("_past", "_window", "count", "counts", "sum_us")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.count = 0
        self.sum_us = 0
        self._past: deque[array[int]] = deque()
        self._window = [0] * BUCKETS

    def record(self, microseconds: int) -> None:
        self.counts[bucket_of(microseconds)] += 1
        self.count += 1
        self.sum_us += microseconds

    def rotate(self) -> None:
        """Begin a new generation and forget the oldest."""
        self._past.append(array("Q", self.counts))
        if len(self._past) > GENERATIONS:
            self._past.popleft()
        self._window = [sum(each) for each in zip(*self._past, strict=True)]
        # In place: recorders may keep a reference.
        self.counts[:] = [0] * BUCKETS

    def recent(self) -> list[int]:
        """Return the counts of the buckets in the window."""
        return list(map(add, self.counts, self._window))


def merged(parts: Iterable[Sequence[int]]) -> list[int]:
    """Return the sums of bucket counts."""
    total = [0] * BUCKETS
    for part in parts:
        total = list(map(add, total, part))
    return total


def quantiles_ms(counts: Sequence[int], quantiles: Sequence[float] = QUANTILES) -> list[float]:
    """Return the quantiles, in milliseconds; 0 if nothing was recorded. `quantiles` are ascending."""
    total = sum(counts)
    if not total:
        return [0.0] * len(quantiles)
    found: list[float] = []
    seen = 0
    ranks = iter([quantile * total for quantile in quantiles])
    rank = next(ranks)
    for bucket, count in enumerate(counts):
        if not count:
            continue
        seen += count
        while seen >= rank:
            found.append(_MIDDLES_MS[bucket])
            following = next(ranks, None)
            if following is None:
                return found
            rank = following
    return found + [_MIDDLES_MS[-1]] * (len(quantiles) - len(found))
