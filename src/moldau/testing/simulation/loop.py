"""A deterministic event loop without real time, sockets or threads.

The virtual clock stands still while callbacks run. When no callback is ready it jumps to the next timer;
without a timer, the loop raises `Deadlock` with the waiting tasks. Callbacks run in the order in which they
became ready, as in any asyncio loop. With `shuffle`, tasks that are ready at the same time run in random
order, while plain callbacks keep their order, which asyncio guarantees.

`create_server` and `create_connection` use the simulated network; executor work runs at once. Callbacks of
a dead `Process` are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from moldau.testing.simulation.network import SimulatedNetwork
from moldau.testing.simulation.process import Process, close_task, process_of
from moldau.testing.simulation.trace import Trace

T = TypeVar("T")
H = TypeVar("H", bound=asyncio.Handle)

#: More callbacks than this at one virtual time indicate an endless loop.
_MAX_TURNS = 100_000
_MIN_WAIT_S = 1e-6
#: The maximum distance by which a ready task is moved.
_MAX_SHUFFLE = 8


class Deadlock(RuntimeError):
    """No callback is ready or scheduled, and the work is not done."""


class SimulatedLoop(asyncio.BaseEventLoop):
    def __init__(
        self, network: SimulatedNetwork, *, trace: Trace | None = None, shuffle: Random | None = None
    ) -> None:
        super().__init__()
        self.network = network
        self.turns = 0
        self._now = 0.0
        self._shuffle = shuffle
        self._turns_now = 0
        self._processes: dict[Process, None] = {}
        self._clock_resolution = 1e-9
        self._selector = self
        #: The number of task steps at the end of the queue.
        self._tasks_at_end = 0
        if trace is not None:
            trace.use_time(self.time)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end and close the loop."""
        try:
            return self.run_until_complete(main)
        finally:
            for process in self._processes:
                self.kill(process)
            for task in sorted(asyncio.all_tasks(self), key=lambda task: task.get_name()):
                close_task(task)
            self.close()

    def time(self) -> float:
        return self._now

    # The selector interface of the base class.

    def select(self, timeout: float | None) -> list[Any]:
        """Advance the clock instead of waiting for I/O."""
        self.turns += 1
        self._turns_now += 1
        self._tasks_at_end = 0
        if timeout is None:
            raise Deadlock(self._who_waits())
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
            self._turns_now = 0
        elif self._turns_now > _MAX_TURNS:
            raise Deadlock(f"the clock does not advance from {self._now}; waiting: {self._who_waits()}")
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        return None

    def _write_to_self(self) -> None:
        return None

    def _who_waits(self) -> str:
        waiting = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        return ", ".join(f"{task.get_name()} in {task.get_coro()}" for task in waiting) or "no task"

    # Callbacks.

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._is_dead(context):
            return _dropped(asyncio.Handle(callback, args, self, context))
        handle = super().call_soon(callback, *args, context=context)
        if self._shuffle is not None:
            self._take_place(handle, callback)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._is_dead(context):
            return _dropped(asyncio.TimerHandle(when, callback, args, self, context))
        if when > self._now:
            # A delay too short to advance the clock would never elapse.
            when = max(when, self._now + _MIN_WAIT_S)
        return super().call_at(when, callback, *args, context=context)

    def _is_dead(self, context: Context | None) -> bool:
        process = process_of(context)
        return process is not None and not process.alive

    def _take_place(self, handle: asyncio.Handle, callback: Callable[..., object]) -> None:
        """Insert a task step at a random place among the task steps at the end of the queue."""
        if not _is_turn_of_task(callback):
            self._tasks_at_end = 0
            return
        ready, shuffle = self._ready, self._shuffle  # type: ignore[attr-defined]
        others = min(self._tasks_at_end, len(ready) - 1, _MAX_SHUFFLE)
        if others and shuffle is not None:
            ready.pop()
            ready.insert(len(ready) - shuffle.randint(0, others), handle)
        self._tasks_at_end += 1

    # Tasks, threads and processes.

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        text = None if name is None else str(name)
        task = super().create_task(coro, name=text, context=context, **options)
        process = process_of(context)
        if process is not None:
            self._processes[process] = None
            process.adopt(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  it is raised in the caller
            future.set_exception(error)
        return future

    def kill(self, process: Process) -> None:
        """End a process; must not be called by the process itself."""
        process.alive = False
        for handle in [*self._ready, *self._scheduled]:  # type: ignore[attr-defined]
            if process_of(handle._context) is process:
                handle.cancel()
        process.bury()

    # The network.

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        return self.network.serve(options["sock"], protocol_factory)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        return await self.network.connect(protocol_factory, str(host), int(port))


def _dropped(handle: H) -> H:
    handle.cancel()
    return handle


def _is_turn_of_task(callback: Callable[..., object]) -> bool:
    owner = getattr(callback, "__self__", None)
    return isinstance(owner, asyncio.Task) or type(callback).__name__ == "TaskStepMethWrapper"
