"""A queue of asynchronous tasks that run one at a time, each to completion even if its caller stops waiting.

Raft requires this: the effects of one input are stored and performed before the next input. A `KafkaError` is
the caller's result. Any other error, a failed disk, and an error of a task without a caller leave the work
half done: the queue then stops for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.disk.disk import LogDirectoryFailed

R = TypeVar("R")
Task = Callable[[], Awaitable[R]]
#: Maximum time `close` waits for the running task.
_CLOSE_SECONDS = 1.0
#: The most tasks that wait; a disk that hangs blocks all of them, and clients retry.
MAX_QUEUED = 10_000


class SerialQueue:
    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        self._on_failure = on_failure
        self._queue: asyncio.Queue[tuple[Task[Any], asyncio.Future[Any] | None]] = asyncio.Queue()
        self._runner: asyncio.Task[None] | None = None
        self._closed: KafkaError | None = None
        #: A task failed or was interrupted, so the state on disk may be half written.
        self.failed = False

    def start(self) -> None:
        self._runner = asyncio.create_task(self._run())

    def post(self, task: Task[None]) -> None:
        """Queue a task without a caller."""
        if self._closed is None:
            self._queue.put_nowait((task, None))

    async def run(self, task: Task[R]) -> R:
        """Queue a task and return its result."""
        if self._closed is not None:
            raise KafkaError(self._closed.code, self._closed.message)
        if self._queue.qsize() >= MAX_QUEUED:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "The metadata log's request queue is full; retry later."
            )
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((task, future))
        return await future

    async def close(self) -> None:
        """Let the running task finish within a time limit, and fail the queued ones."""
        self._reject_queued(KafkaError(ErrorCode.NOT_CONTROLLER, "The metadata quorum is shutting down."))
        if self._runner is not None:
            self._queue.put_nowait((_stop, None))
            await asyncio.wait([self._runner], timeout=_CLOSE_SECONDS)
            # An interrupted task may continue in a thread, so the log must not be touched any more.
            self.failed = self.failed or not self._runner.done()
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            task, future = await self._queue.get()
            if task is _stop:
                return
            try:
                result = await task()
            except LogDirectoryFailed as error:
                self._fail(error, future)
                return
            except KafkaError as error:
                if future is None:
                    self._fail(error, None)
                    return
                _set_error(future, error)
            except Exception as error:  # noqa: BLE001  any other error leaves the work half done
                self._fail(error, future)
                return
            else:
                if future is not None and not future.done():
                    future.set_result(result)

    def _fail(self, error: Exception, future: asyncio.Future[Any] | None) -> None:
        self.failed = True
        closed = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
        _set_error(future, closed)
        self._reject_queued(closed)
        self._on_failure(error)

    def _reject_queued(self, error: KafkaError) -> None:
        if self._closed is None:
            self._closed = error
        while not self._queue.empty():
            _, future = self._queue.get_nowait()
            _set_error(future, error)


def _set_error(future: asyncio.Future[Any] | None, error: KafkaError) -> None:
    if future is not None and not future.done():
        future.set_exception(KafkaError(error.code, error.message))
        # Mark the exception as retrieved: the caller may have stopped waiting.
        future.exception()


async def _stop() -> None:
    """The last task."""
