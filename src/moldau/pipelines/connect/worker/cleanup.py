"""Deletes statuses of what is not configured any more; the leader does so after every change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from moldau.base.errors import KafkaError
from moldau.pipelines.connect.storage.status_state import topic_removal
from moldau.pipelines.connect.storage.store import Store

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0


class Cleanup:
    def __init__(self, store: Store, worker_id: str, leads: Callable[[], bool]) -> None:
        self._store = store
        self._worker_id = worker_id
        self._leads = leads
        self._due = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    def soon(self) -> None:
        self._due.set()

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            if not self._leads():
                continue
            try:
                await self._store.refresh_statuses()
            except (KafkaError, OSError) as error:
                logger.warning("The statuses cannot be read: %s", error)
                self._due.set()
                await asyncio.sleep(_RETRY_S)
                continue
            self._clean()

    def _clean(self) -> None:
        self._store.destroy_statuses(self._worker_id)
        topics, configured = self._store.statuses.topics, self._store.configs.connectors
        for connector in [each for each in topics if each not in configured]:
            removals = [topic_removal(topic, connector) for topic in topics[connector]]
            if removals:
                self._store.status_log.append_soon(removals)
