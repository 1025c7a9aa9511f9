"""The records that are on their way: batches by offset, each with one state or one for every record."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from moldau.share.deliveries import Delivery, RecordState


class InFlightBatch:
    """Records that were handed out together. It keeps one state as long as that is true of all of them."""

    __slots__ = ("each", "first", "last", "whole")

    def __init__(self, first: int, last: int, delivery: Delivery) -> None:
        self.first = first
        self.last = last
        self.whole: Delivery | None = delivery
        #: By offset, in ascending order.
        self.each: dict[int, Delivery] | None = None

    def split(self) -> dict[int, Delivery]:
        """From here on every record has a state of its own."""
        if self.each is None:
            whole, self.whole = self.whole, None
            self.each = {} if whole is None else {offset: whole.copy() for offset in self.offsets()}
            if whole is not None:
                whole.let_go()
        return self.each

    def split_at(self, last_given: int) -> None:
        """Only the records up to `last_given` were handed out; the rest never was."""
        for offset, delivery in self.split().items():
            if offset > last_given:
                delivery.let_go()
                delivery.state, delivery.member_id = RecordState.AVAILABLE, ""
                delivery.count -= 1

    def offsets(self) -> range:
        return range(self.first, self.last + 1)

    def within(self, first: int, last: int) -> bool:
        return self.first >= first and self.last <= last

    def straddles(self, offset: int) -> bool:
        """Whether it begins before and ends at or after an offset."""
        return self.first < offset <= self.last

    def runs(self) -> Iterator[tuple[int, int, Delivery]]:
        """Its states, with the offsets each stands for."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        else:
            for offset, delivery in (self.each or {}).items():
                yield offset, offset, delivery

    def at(self, offset: int) -> Delivery | None:
        """The state of one record; of the last one for an offset behind it."""
        if self.whole is not None:
            return self.whole
        return None if self.each is None else self.each.get(min(offset, self.last))


class InFlight:
    """Batches sorted by where they begin; they do not overlap."""

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return (self._batches[key] for key in self._keys)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._keys[0]]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[self._keys[-1]]

    def put(self, batch: InFlightBatch) -> None:
        if batch.first not in self._batches:
            if not self._keys or batch.first > self._keys[-1]:
                self._keys.append(batch.first)
            else:
                self._keys.insert(bisect_left(self._keys, batch.first), batch.first)
        self._batches[batch.first] = batch

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before an offset."""
        number = bisect_right(self._keys, offset)
        return self._batches[self._keys[number - 1]] if number else None

    def higher(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins behind an offset."""
        number = bisect_right(self._keys, offset)
        return self._batches[self._keys[number]] if number < len(self._keys) else None

    def between(self, low: int, high: int) -> list[InFlightBatch]:
        """Those that begin from `low` to `high`."""
        start, end = bisect_left(self._keys, low), bisect_right(self._keys, high)
        return [self._batches[key] for key in self._keys[start:end]]

    def remove_before(self, key: int) -> None:
        """Forget those that begin before `key`."""
        number = bisect_left(self._keys, key)
        for gone in self._keys[:number]:
            del self._batches[gone]
        del self._keys[:number]

    def clear(self) -> None:
        self._keys.clear()
        self._batches.clear()
