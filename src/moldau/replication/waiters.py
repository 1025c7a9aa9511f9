"""Callbacks of those who wait for something to change in a partition."""

from __future__ import annotations

from collections.abc import Callable

#: Called with the number of bytes that came, 0 when there is another reason to look again.
Waiter = Callable[[int], None]


class Waiters:
    """Woken in the order they came."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[Waiter, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiter: Waiter) -> None:
        self._waiting[waiter] = None

    def remove(self, waiter: Waiter) -> None:
        self._waiting.pop(waiter, None)

    def wake(self, size: int) -> None:
        for waiter in list(self._waiting):
            waiter(size)
