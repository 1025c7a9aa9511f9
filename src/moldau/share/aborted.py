"""Batches as they lie in the log, and which of them belong to transactions that came to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class FetchedBatch(NamedTuple):
    """What a batch's header says."""

    base: int
    last: int
    size: int
    producer_id: int = -1
    transactional: bool = False
    #: Whether it is the marker that ends a transaction without effect.
    aborts: bool = False


def aborted_batches(
    batches: Iterable[FetchedBatch], aborted: Sequence[tuple[int, int]]
) -> list[FetchedBatch]:
    """`aborted` holds producer and first offset of each such transaction."""
    waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1][1] <= batch.last:
            producers.add(waiting.pop()[0])
        if batch.aborts:
            producers.discard(batch.producer_id)
        elif batch.transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def without(
    ranges: Iterable[tuple[int, int, int]], dropped: Sequence[FetchedBatch]
) -> Iterator[tuple[int, int, int]]:
    """The ranges (first, last, count) with the offsets of these batches cut out."""
    for first, last, count in ranges:
        for batch in dropped:
            if batch.last < first or batch.base > last:
                continue
            if batch.base > first:
                yield first, batch.base - 1, count
            first = batch.last + 1
        if first <= last:
            yield first, last, count
