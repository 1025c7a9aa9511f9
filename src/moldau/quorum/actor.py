"""Runs one piece of work after another, each to its end, whoever asked for it and whether or not they wait.

The rules of the quorum allow nothing else: what they decide must be stored and done before the next message
is looked at. A `KafkaError` is an answer to whoever asked. Anything else, a disk that failed, and an error
that nobody asked for, means that the work is half done: then nothing is done any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.disk.disk import LogDirectoryFailed

R = TypeVar("R")
Work = Callable[[], Awaitable[R]]
#: How long the end waits for work that is under way.
_CLOSE_SECONDS = 1.0
#: How much may wait for its turn; a disk that hangs holds up everything, and whoever asks asks again.
MAX_WAITING = 10_000


class Actor:
    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        self._on_failure = on_failure
        self._inbox: asyncio.Queue[tuple[Work[Any], asyncio.Future[Any] | None]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._ended: KafkaError | None = None
        self.failed = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def post(self, work: Work[None]) -> None:
        """Do it some time; nobody waits for it."""
        if self._ended is None:
            self._inbox.put_nowait((work, None))

    async def run(self, work: Work[R]) -> R:
        """Do it when it is its turn, and give back what comes of it."""
        if self._ended is not None:
            raise KafkaError(self._ended.code, self._ended.message)
        if self._inbox.qsize() >= MAX_WAITING:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Too much waits for the metadata log.")
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait((work, future))
        return await future

    async def close(self) -> None:
        """Let what is under way come to its end, unless that takes too long; whoever still waits is told."""
        self._end(KafkaError(ErrorCode.NOT_CONTROLLER, "The metadata quorum is shutting down."))
        if self._task is not None:
            self._inbox.put_nowait((_nothing, None))
            await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
            # What is cut off now may still be going on in a thread, so nobody may touch the log any more.
            self.failed = self.failed or not self._task.done()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            work, future = await self._inbox.get()
            if work is _nothing:
                return
            try:
                result = await work()
            except LogDirectoryFailed as error:
                self._fail(error, future)
                return
            except KafkaError as error:
                if future is None:
                    self._fail(error, None)
                    return
                _settle(future, error)
            except Exception as error:  # noqa: BLE001  whatever it was, the work is half done
                self._fail(error, future)
                return
            else:
                if future is not None and not future.done():
                    future.set_result(result)

    def _fail(self, error: Exception, future: asyncio.Future[Any] | None) -> None:
        self.failed = True
        ended = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
        _settle(future, ended)
        self._end(ended)
        self._on_failure(error)

    def _end(self, error: KafkaError) -> None:
        if self._ended is None:
            self._ended = error
        while not self._inbox.empty():
            _, future = self._inbox.get_nowait()
            _settle(future, error)


def _settle(future: asyncio.Future[Any] | None, error: KafkaError) -> None:
    if future is not None and not future.done():
        future.set_exception(KafkaError(error.code, error.message))
        # Whoever asked may be gone; then nobody wants to hear of it.
        future.exception()


async def _nothing() -> None:
    """The last piece of work."""
