"""The thread pool for blocking work (fsync, cold reads, recovery, recompression) of the event loop.

A node uses `ThreadPool`; `InlinePool` runs the work at once, for tests and the simulation, which need a
deterministic order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Pool(Protocol):
    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `fn` where it may block, and return its result."""
        ...

    def resize(self, threads: int) -> None:
        """Change the number of threads."""
        ...

    def separate(self, threads: int, name: str) -> Pool:
        """Return another pool of the same kind, for work that must not delay this one's."""
        ...

    def close(self) -> None:
        """Wait for running work and refuse new work."""
        ...


class ThreadPool:
    """A fixed number of threads with a queue."""

    def __init__(self, threads: int, name: str = "moldau-pool") -> None:
        self._name = name
        self._threads = threads
        self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        call = partial(fn, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def resize(self, threads: int) -> None:
        if threads != self._threads:
            # The old threads finish what they have started or queued.
            self._executor.shutdown(wait=False)
            self._threads = threads
            self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=self._name)

    def separate(self, threads: int, name: str) -> ThreadPool:
        return ThreadPool(threads, name)

    def close(self) -> None:
        self._executor.shutdown(wait=True)


class InlinePool:
    """Runs the work in the caller, before `run` returns."""

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return fn(*args, **kwargs)

    def resize(self, threads: int) -> None:
        return None

    def separate(self, threads: int, name: str) -> InlinePool:
        return InlinePool()

    def close(self) -> None:
        return None
