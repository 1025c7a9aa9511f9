"""Calls of a connector's code, which may block for as long as its target does.

Each call has a thread of its own. In the pool of the event loop, which has a few threads, some connectors
whose targets do not answer would delay all others, and the end of the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def call_in_thread(name: str, function: Callable[..., T], *arguments: object) -> T:
    """Return what a function returns, or raise what it raises; a cancelled call continues without effect."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: Exception | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: Exception | None = None
        try:
            result = function(*arguments)
        except Exception as failure:  # noqa: BLE001 - raised by the caller
            error = failure
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await ended
