"""The metrics of a worker for Prometheus: its connectors and tasks, their records, and the lag of sinks.

`GET /metrics` is ours: Kafka Connect has these numbers in JMX only. The names are those that rules of the JMX
exporter give to Kafka Connect's metrics. Counts restart with the task.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AsyncAdminClient
from moldau.client.wire.settings import ClientSettings
from moldau.metrics.exposition import Scrape
from moldau.metrics.family import Family, Kind
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.worker.runtime import Runtime
from moldau.pipelines.connect.worker.task.clients import group_id
from moldau.pipelines.connect.worker.task.meter import NAMES, POLLED, READ, SENT, WRITTEN

_LATEST: Final = -1
_TIMEOUT_S: Final = 5.0
#: Scrapes within this time share one look at the lag.
_FRESH_S: Final = 5.0
_TASK: Final = ("connector", "task")


def _total(name: str, text: str) -> Family:
    kind = name.partition("_")[0]
    return Family(f"kafka_connect_{kind}_task_{name}_total", Kind.COUNTER, text, _TASK, has_total=False)


CONNECTORS: Final = Family("kafka_connect_worker_connector_count", Kind.GAUGE, "Connectors on this worker.")
TASKS: Final = Family("kafka_connect_worker_task_count", Kind.GAUGE, "Tasks on this worker.")
RUNNING: Final = Family(
    "kafka_connect_connector_task_running",
    Kind.GAUGE,
    "1 if the task runs or waits, 0 if it has failed.",
    _TASK,
    has_total=False,
)
LAG: Final = Family(
    "kafka_connect_sink_lag_records",
    Kind.GAUGE,
    "Records of a partition that the sink's group has not committed.",
    ("connector", "topic", "partition"),
    has_total=False,
)
RECORDS: Final = {
    POLLED: _total(POLLED, "Records that a source has returned."),
    WRITTEN: _total(WRITTEN, "Records of a source that were sent to topics, after transformations."),
    READ: _total(READ, "Records that a sink has consumed."),
    SENT: _total(SENT, "Records that a sink has put, after transformations."),
}
FAMILIES: Final = (CONNECTORS, TASKS, RUNNING, *RECORDS.values(), LAG)

#: Connector, topic and partition → records.
Lags = dict[tuple[str, str, int], int]


class WorkerMetrics:
    def __init__(self, client: ClientSettings, runtime: Runtime, store: Store, plugins: Plugins) -> None:
        self._admin = AsyncAdminClient(client)
        self._runtime = runtime
        self._store = store
        self._plugins = plugins
        self._lags: Lags = {}
        self._looked_at = -_FRESH_S
        self._looking = asyncio.Lock()

    async def scrape(self) -> Scrape:
        """Return the samples; without the brokers those of the lag are missing."""
        scrape = Scrape(FAMILIES)
        tasks = sorted(self._runtime.tasks.items(), key=lambda each: (each[0].connector, each[0].task))
        scrape.add(CONNECTORS, len(self._runtime.connectors))
        scrape.add(TASKS, len(tasks))
        for task, slot in tasks:
            scrape.add(RUNNING, 0 if slot.failed else 1, task.connector, task.task)
            for name in NAMES:
                if name in slot.counts:
                    scrape.add(RECORDS[name], slot.counts[name], task.connector, task.task)
        for key, records in sorted((await self._fresh_lags()).items()):
            scrape.add(LAG, records, *key)
        return scrape

    async def close(self) -> None:
        await self._admin.close()

    async def _fresh_lags(self) -> Lags:
        async with self._looking:
            if time.monotonic() - self._looked_at >= _FRESH_S:
                try:
                    self._lags = await asyncio.wait_for(self._read_lags(), _TIMEOUT_S)
                except (KafkaError, OSError, TimeoutError):
                    self._lags = {}
                self._looked_at = time.monotonic()
        return self._lags

    async def _read_lags(self) -> Lags:
        """Return the lags of the sinks whose connector runs here, so that each is reported once."""
        found: Lags = {}
        for name in self._runtime.connectors:
            config = self._store.configs.connectors.get(name)
            if config is None or not self._plugins.is_sink(config["connector.class"]):
                continue
            committed = await self._admin.list_group_offsets(group_id(config, name))
            ends = await self._admin.list_offsets(dict.fromkeys(committed, _LATEST))
            for partition, at in committed.items():
                end = ends.get(partition)
                if end is not None and not isinstance(end, KafkaError) and not isinstance(at, KafkaError):
                    found[name, partition.topic, partition.partition] = max(0, end.offset - at.offset)
        return found
