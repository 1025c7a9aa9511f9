"""The simulated process of a callback, timer or task, so that all of them can end at once.

A `Process` is stored in the context, so that tasks inherit it. When it dies, its callbacks are dropped and
its coroutines are closed where they are, in order of creation. Their `finally` blocks run, but reach
neither disk nor network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_CURRENT: ContextVar[Process | None] = ContextVar("simulated_process", default=None)


class Process:
    """A process on a host of the simulated network."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.alive = True
        self._tasks: list[asyncio.Task[Any]] = []
        self.context: Context = copy_context()
        self.context.run(_CURRENT.set, self)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work, context=self.context)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) % 256 == 0:
            self._tasks = [each for each in self._tasks if not each.done()]

    def bury(self) -> None:
        """Close the coroutines of a dead process; call it from outside of the process."""
        self.alive = False
        for task in self._tasks:
            if not task.done():
                close_task(task)
            elif not task.cancelled():
                # The process that would handle the exception is dead.
                task.exception()
        self._tasks.clear()


def close_task(task: asyncio.Task[Any]) -> None:
    """Close a task that will not run any more."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    try:
        task.get_coro().close()
    except BaseException:  # noqa: BLE001  a coroutine may refuse to end, or meet the disk that is gone
        return


def process_of(context: Context | None = None) -> Process | None:
    """Return the process of a context, by default of the current one."""
    return _CURRENT.get() if context is None else context.get(_CURRENT)
