"""Fences earlier tasks of a source connector before new ones start (KIP-618).

A task fences the producer of its own predecessor. Tasks that do not exist any more have no successor, so the
leader fences all transactional ids of the last generation once, and records the number of tasks of the new
one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final

from moldau.client.batches.transactions import ProducerState
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.connect.storage import config_records as records
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.storage.types import TaskId

_TIMEOUT_MS: Final = 60_000


def transactional_id(group_id: str, task: TaskId) -> str:
    """Return the transactional id of a source task, the same as Kafka Connect's."""
    return f"{group_id}-{task}"


class Fencing:
    def __init__(self, client: ClientSettings, group_id: str, store: Store) -> None:
        self._client = client
        self._group_id = group_id
        self._store = store
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, connector: str) -> None:
        """Fence what has to be fenced before tasks of the connector start; `KafkaError` if that failed."""
        async with self._locks[connector]:
            await self._store.config_log.read_to_end()
            configs = self._store.configs
            if connector not in configs.pending_fencing:
                return
            before = configs.fenced_counts.get(connector)
            now = configs.task_counts.get(connector, 0)
            if before is not None and (before, now) != (1, 1):
                await self._fence([TaskId(connector, number) for number in range(before)])
            await self._store.config_log.append([records.task_count(connector, now)])

    async def _fence(self, tasks: list[TaskId]) -> None:
        cluster = Cluster(self._client)
        try:
            for task in tasks:
                name = transactional_id(self._group_id, task)
                producer = ProducerState(
                    cluster, name, transaction_timeout_ms=_TIMEOUT_MS, timeout_ms=_TIMEOUT_MS
                )
                await producer.initialize()
        finally:
            cluster.close()
