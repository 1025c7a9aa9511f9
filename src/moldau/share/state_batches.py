"""Persisted state batches, and combining them: newer batches win, equal neighbours are merged.

The delivery count tells which of two overlapping batches is newer, then the state. The order in which batches
arrive does not matter.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

UNKNOWN_START_OFFSET = -1


class StateBatch(NamedTuple):
    """A run of records in the same state, as it is persisted."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


def combine(
    known: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return both as one sorted sequence without overlaps and without offsets before `start_offset`."""
    batches = [batch for each in (*known, *new) if (batch := _cut(each, start_offset)) is not None]
    if len(batches) < 2:
        return tuple(batches)
    waiting = [_key(batch) for batch in set(batches)]
    heapq.heapify(waiting)
    result: list[StateBatch] = []
    previous = _batch(heapq.heappop(waiting))
    while waiting:
        candidate = _batch(heapq.heappop(waiting))
        adjacent = candidate.first_offset == previous.last_offset + 1 and _age(candidate) == _age(previous)
        if candidate.first_offset > previous.last_offset and not adjacent:
            result.append(previous)
            previous = candidate
            continue
        for each in _resolve(previous, candidate):
            heapq.heappush(waiting, _key(each))
        previous = _batch(heapq.heappop(waiting))
        # The result may touch a batch that was finished before.
        while result and _mergeable(result[-1], previous):
            heapq.heappush(waiting, _key(previous))
            previous = result.pop()
    return (*result, previous)


def _cut(batch: StateBatch, start_offset: int) -> StateBatch | None:
    if start_offset == UNKNOWN_START_OFFSET or batch.first_offset >= start_offset:
        return batch
    return batch._replace(first_offset=start_offset) if batch.last_offset >= start_offset else None


def _mergeable(before: StateBatch, after: StateBatch) -> bool:
    if after.first_offset <= before.last_offset:
        return True
    return after.first_offset == before.last_offset + 1 and _age(after) == _age(before)


def _resolve(previous: StateBatch, candidate: StateBatch) -> list[StateBatch]:
    """Replace two batches that overlap or touch, the first starting no later, by disjoint ones."""
    if _age(previous) == _age(candidate):
        return [previous._replace(last_offset=max(previous.last_offset, candidate.last_offset))]
    if _age(candidate) < _age(previous):
        if candidate.last_offset <= previous.last_offset:
            return [previous]
        return [previous, candidate._replace(first_offset=previous.last_offset + 1)]
    pieces = [candidate]
    if previous.first_offset < candidate.first_offset:
        pieces.append(previous._replace(last_offset=candidate.first_offset - 1))
    if previous.last_offset > candidate.last_offset:
        pieces.append(previous._replace(first_offset=candidate.last_offset + 1))
    return pieces


def _age(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.state


def _key(batch: StateBatch) -> tuple[int, int, int, int]:
    return batch.first_offset, batch.last_offset, batch.delivery_count, batch.state


def _batch(key: tuple[int, int, int, int]) -> StateBatch:
    return StateBatch(key[0], key[1], key[3], key[2])
