"""Answers and streams of the cluster that pages share, so that viewers do not multiply requests."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError

T = TypeVar("T")

_LIFE_S: Final = 3.0
_MAX_ENTRIES: Final = 100
#: Items that wait for a slow viewer; it misses the oldest ones.
_MAX_WAITING: Final = 20


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
            while len(self._answers) > _MAX_ENTRIES:
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


class _Stream:
    """A stream and the queues of its viewers; None is its end."""

    def __init__(self, items: AsyncIterator[Any], ended: Callable[[], None]) -> None:
        self.queues: set[asyncio.Queue[Any]] = set()
        self.task = asyncio.create_task(self._pump(items, ended))

    async def _pump(self, items: AsyncIterator[Any], ended: Callable[[], None]) -> None:
        last: KafkaError | None = None
        try:
            async for item in items:
                self._offer(item)
        except KafkaError as error:
            last = error
        finally:
            ended()
            self._offer(last)

    def _offer(self, item: Any) -> None:
        for queue in self.queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(item)


class SharedStreams:
    """Streams that are read once for all their viewers, while there are any."""

    def __init__(self) -> None:
        self._streams: dict[Hashable, _Stream] = {}

    async def follow(self, key: Hashable, begin: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, None]:
        """Yield the items of a stream from now on; `begin` starts it for the first viewer.

        A `KafkaError` of the stream is raised for all viewers.
        """
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(begin(), lambda: self._forget(key, stream))
        queue: asyncio.Queue[Any] = asyncio.Queue(_MAX_WAITING)
        stream.queues.add(queue)
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, KafkaError):
                    raise item.with_traceback(None)
                yield item
        finally:
            stream.queues.discard(queue)
            if not stream.queues:
                self._forget(key, stream)
                stream.task.cancel()

    def _forget(self, key: Hashable, stream: _Stream | None) -> None:
        if self._streams.get(key) is stream:
            del self._streams[key]
