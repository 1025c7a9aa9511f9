"""Work that may wait (fsync, cold reads, recovery, recompression) leaves the event loop through a `Pool`.

`ThreadPool` is what a node uses; `InlinePool` runs the work at once, for tests and for the simulated loop,
where everything must happen in one known order.
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
        """Run `fn` where it may block and give back what it returns or raises."""
        ...

    def resize(self, threads: int) -> None:
        """Use this many threads from now on."""
        ...

    def close(self) -> None:
        """Wait for what is running and refuse anything new."""
        ...


class ThreadPool:
    """A few threads; more work than threads waits its turn."""

    def __init__(self, threads: int, name: str = "moldau-pool") -> None:
        self._name = name
        self._threads = threads
        self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        call = partial(fn, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def resize(self, threads: int) -> None:
        if threads != self._threads:
            # What the old threads have begun or queued they still finish.
            self._executor.shutdown(wait=False)
            self._threads = threads
            self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=self._name)

    def close(self) -> None:
        self._executor.shutdown(wait=True)


class InlinePool:
    """No threads: the caller does the work itself, before `run` returns."""

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return fn(*args, **kwargs)

    def resize(self, threads: int) -> None:
        return None

    def close(self) -> None:
        return None
