"""Work that is repeated: at an interval, with errors logged and retried after a growing delay."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moldau.base.backoff import Backoff
from moldau.base.errors import KafkaError
from moldau.pipelines.mirror.config.definitions import MirrorConfigError

logger = logging.getLogger(__name__)

#: The interval of work that is done once.
NEVER_AGAIN = 1e9
_RETRY = Backoff(1.0, 60.0)


async def repeat(what: str, interval_seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` every `interval_seconds` until cancelled; an invalid configuration is raised."""
    failures = 0
    while True:
        try:
            await work()
            failures = 0
            delay = interval_seconds
        except MirrorConfigError:
            raise
        except KafkaError as error:
            failures += 1
            delay = _RETRY.seconds(failures)
            logger.warning("%s failed, next attempt in %.0f s: %s", what, delay, error)
        await asyncio.sleep(delay)


async def repeat_until_done(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` until it succeeds once."""
    done = asyncio.Event()

    async def attempt() -> None:
        await work()
        done.set()

    attempts = asyncio.create_task(repeat(what, NEVER_AGAIN, attempt))
    waiting = asyncio.create_task(done.wait())
    try:
        await asyncio.wait([attempts, waiting], return_when=asyncio.FIRST_COMPLETED)
        if attempts.done():
            attempts.result()
    finally:
        attempts.cancel()
        waiting.cancel()
