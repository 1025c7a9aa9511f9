"""Decisions that are made in a thread first and discarded, so that the real ones find the expensive results.

The thread is a daemon: a comparison that takes seconds does not delay the exit of the process, as the threads
of an executor do, which Python joins. Its queue is bounded by the number of connections, each of which waits
for its own rehearsal; those of closed connections are skipped.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple


class _Work(NamedTuple):
    run: Callable[[], object]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


class Rehearsals:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    async def run(self, work: Callable[[], object]) -> None:
        """Run `work` in the thread, drop its result and raise its error."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="rehearsal", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.put(_Work(work, loop, done))
        await done

    def close(self) -> None:
        """Run no further rehearsals; the one that runs is not waited for."""
        self._is_closed = True
        self._queue.put(None)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            if self._is_closed or work.done.cancelled():
                continue
            error = _error_of(work.run)
            try:
                work.loop.call_soon_threadsafe(_settle, work.done, error)
            except RuntimeError:
                # The event loop has been closed meanwhile.
                return


def _error_of(run: Callable[[], object]) -> Exception | None:
    try:
        run()
    except StopIteration as error:
        # A future cannot be given one.
        return RuntimeError(repr(error))
    except Exception as error:  # noqa: BLE001  the caller gets it
        return error
    return None


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
