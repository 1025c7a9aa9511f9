"""A few threads for calls that take long: they wait for the network, or compute.

They are daemons: such a call must not keep the process from ending, as those of `ThreadPoolExecutor` do.
The queue is not bounded; callers wait for their calls, and calls that were cancelled are skipped.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """Threads are started when they are needed, up to a number."""

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._started = 0
        self._idle = threading.Semaphore(0)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        self._calls.put((future, lambda: fn(*args, **kwargs)))
        if not self._idle.acquire(blocking=False) and self._started < self._number:
            self._started += 1
            name = f"{self._name}-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after their calls; `wait` is not supported."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work = call
            if future.set_running_or_notify_cancel():
                _run(future, work)
            self._idle.release()


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except StopIteration as error:
        # A future of asyncio cannot have one.
        future.set_exception(RuntimeError(repr(error)))
    except Exception as error:  # noqa: BLE001  the caller gets it
        future.set_exception(error)
