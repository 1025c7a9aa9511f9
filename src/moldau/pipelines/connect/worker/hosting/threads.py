"""Tasks in threads of the worker's process: for tests, and for small workers without Spark and Java."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.storage.types import Record
from moldau.pipelines.connect.worker.hosting.host import (
    HostedTask,
    Offsets,
    OnEvent,
    cancelled,
    described,
)
from moldau.pipelines.connect.worker.task.control import Control, Event
from moldau.pipelines.connect.worker.task.run import run_task
from moldau.pipelines.connect.worker.task.spec import TaskSpec


class ThreadHost:
    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._offsets: Offsets | None = None

    async def start(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._loop = asyncio.get_running_loop()

    def run(self, spec: TaskSpec, on_event: OnEvent) -> HostedTask:
        if self._offsets is None:
            raise RuntimeError("The host is not started.")
        return _Thread(spec, self._plugins, _Link(spec, self._offsets, on_event, self._loop))

    async def close(self) -> None:
        return

    async def failed(self) -> str:
        await asyncio.Event().wait()
        return ""


class _Link:
    """Calls the worker's event loop from the thread of a task."""

    def __init__(
        self, spec: TaskSpec, offsets: Offsets, on_event: OnEvent, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._connector = spec.connector
        self._offsets = offsets
        self._on_event = on_event
        self._loop = loop
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True

    def report(self, event: Event, detail: str | None = None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_event, event, detail)

    def offsets(self, partitions: Sequence[Any]) -> list[dict[str, Any] | None]:
        reading = self._offsets.read_offsets(self._connector, partitions)
        return asyncio.run_coroutine_threadsafe(reading, self._loop).result()

    def store_offsets(self, records: Sequence[Record]) -> None:
        asyncio.run_coroutine_threadsafe(self._store(records), self._loop).result()

    async def _store(self, records: Sequence[Record]) -> None:
        if self._cancelled:
            raise cancelled()
        await self._offsets.append_offsets(records)


class _Thread:
    def __init__(self, spec: TaskSpec, plugins: Plugins, link: _Link) -> None:
        self._link = link
        self._control = Control(link, paused=spec.paused)
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._run, args=(spec, plugins), name=described(spec.id), daemon=True
        )
        self._thread.start()

    def pause(self, paused: bool) -> None:
        self._control.pause(paused)

    async def stop(self, timeout_s: float) -> bool:
        self._control.stop()
        try:
            await asyncio.wait_for(self._ended.wait(), timeout_s)
        except TimeoutError:
            # A thread cannot be ended: it continues without effect until it looks.
            self._link.cancel()
            self._control.cancel()
            return False
        return True

    def _run(self, spec: TaskSpec, plugins: Plugins) -> None:
        try:
            run_task(spec, self._control, plugins)
        finally:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._ended.set)
