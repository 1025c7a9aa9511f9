"""Answers of the cluster that pages share for some seconds, so that viewers do not multiply requests."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from moldau.base.clock import Clock

T = TypeVar("T")

_LIFE_S: Final = 3.0
_MOST: Final = 100


class _Answer(NamedTuple):
    task: asyncio.Future[Any]
    until_s: float


class SharedAnswers:
    """Keeps answers for a few seconds; requests for the same thing at one time are one request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer of `ask`, or a recent one. Errors are not kept."""
        known = self._answers.get(key)
        if known is None or (known.task.done() and self._clock.monotonic() >= known.until_s):
            known = _Answer(asyncio.ensure_future(ask()), self._clock.monotonic() + _LIFE_S)
            self._answers[key] = known
            self._answers.move_to_end(key)
            while len(self._answers) > _MOST:
                self._answers.popitem(last=False)
        try:
            # A viewer that leaves does not cancel the request of the others.
            answer: T = await asyncio.shield(known.task)
        except BaseException:
            if known.task.done() and self._answers.get(key) is known:
                del self._answers[key]
            raise
        return answer

    def clear(self) -> None:
        """Forget all answers: an action has changed the cluster."""
        self._answers.clear()
