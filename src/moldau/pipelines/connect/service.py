"""A Connect worker as a service: its state, its tasks and its REST API, wired together."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.config.definition import ConfigError as PropertyError
from moldau.http.asgi import Application as AsgiApplication
from moldau.http.errors import ApiError
from moldau.pipelines.connect.config.providers import ConfigProviders
from moldau.pipelines.connect.config.worker import WorkerSettings
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.rest.application import Application
from moldau.pipelines.connect.storage.log import MemoryLog
from moldau.pipelines.connect.storage.offset_file import OffsetFile
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.worker.assignment import Alone
from moldau.pipelines.connect.worker.herder import Herder
from moldau.pipelines.connect.worker.hosting.host import TaskHost
from moldau.pipelines.connect.worker.hosting.spark import SparkHost
from moldau.pipelines.connect.worker.hosting.threads import ThreadHost
from moldau.pipelines.connect.worker.reports import Reports
from moldau.pipelines.connect.worker.task.clients import shared_properties
from moldau.pipelines.spark.java import JavaMissing, find_java

logger = logging.getLogger(__name__)

_WILDCARDS: Final = ("0.0.0.0", "::")
_NAME: Final = "name"


def create_host(settings: WorkerSettings, plugins: Plugins) -> TaskHost:
    """Return where tasks run (`tasks.host`)."""
    if settings.tasks_host == "spark":
        return SparkHost(settings.spark_master)
    missing = _missing_for_spark() if settings.tasks_host == "auto" else ""
    if settings.tasks_host == "auto" and not missing:
        return SparkHost(settings.spark_master)
    if missing:
        logger.warning("Tasks run in threads of this process, without Spark: %s", missing)
    return ThreadHost(plugins)


def _missing_for_spark() -> str:
    """Return what Spark needs and is not installed; nothing if it can start."""
    if importlib.util.find_spec("pyspark") is None:
        return 'PySpark is not installed (pip install "moldau[spark]").'
    try:
        find_java(os.environ)
    except JavaMissing as error:
        return str(error).partition("\n")[0]
    return ""


def worker_settings(properties: Mapping[str, str], *, standalone: bool) -> WorkerSettings:
    """Read the settings of a worker; `moldau.config`'s error, which commands print, names an invalid one."""
    try:
        resolved = ConfigProviders(properties).resolve(properties)
        read = WorkerSettings.standalone if standalone else WorkerSettings.distributed
        return read(resolved)
    except ConfigError as error:
        raise PropertyError(str(error)) from None


async def cluster_id(settings: WorkerSettings) -> str | None:
    """Return the id of the cluster; `KafkaError` if it cannot be reached."""
    client = ClientSettings.from_properties(shared_properties(settings.properties))
    cluster = Cluster(client)
    try:
        await cluster.retry(lambda: cluster.metadata([]))
        return cluster.cluster_id
    finally:
        cluster.close()


def now_ms() -> int:
    return int(time.time() * 1000)


class StandaloneWorker:
    """A worker alone, with connectors from files. Implements `moldau.http.run.Service`."""

    def __init__(self, properties: Mapping[str, str], connectors: Sequence[Mapping[str, str]]) -> None:
        self._settings = worker_settings(properties, standalone=True)
        self._providers = ConfigProviders(properties)
        self._plugins = Plugins()
        self._connectors = connectors
        self._host = create_host(self._settings, self._plugins)
        self._started = False

    @property
    def application(self) -> AsgiApplication:
        return self._application

    async def start(self, urls: Sequence[str]) -> None:
        """Read the offsets, and start the connectors; `KafkaError` if one is not valid."""
        found = await cluster_id(self._settings)
        if self._settings.offset_file is None:
            raise RuntimeError("A standalone worker has an offsets file.")
        store = Store(MemoryLog(), MemoryLog(), OffsetFile(self._settings.offset_file))
        group = Alone(store.configs)
        reports = Reports(
            store,
            worker_id(urls, self._settings.properties),
            lambda: group.generation,
            now_ms,
            track_topics=self._settings.topic_tracking,
        )
        self._herder = Herder(
            self._settings, self._plugins, self._providers, store, group, self._host, reports
        )
        self._application = Application(self._herder, found)
        await self._host.start(store)
        await store.start(self._herder.changed)
        self._started = True
        for each in self._connectors:
            await self._create(each)

    async def _create(self, config: Mapping[str, str]) -> None:
        name = config.get(_NAME, "")
        try:
            await self._herder.put_config(name, config, may_replace=False)
        except ApiError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Connector {name}: {error.message}") from None

    async def close(self) -> None:
        if self._started:
            await self._herder.runtime.close()
        await self._host.close()

    async def failed(self) -> str:
        return await self._host.failed()


def worker_id(urls: Sequence[str], properties: Mapping[str, str]) -> str:
    """Return the worker's name in statuses: the address that it advertises."""
    parts = urlsplit(advertised_url(urls, properties))
    return f"{parts.hostname}:{parts.port}"


def advertised_url(urls: Sequence[str], properties: Mapping[str, str]) -> str:
    """Return the URL for other workers: `rest.advertised.*`, or that of the first listener."""
    scheme = properties.get("rest.advertised.listener", "").strip().lower()
    chosen = urlsplit(next((each for each in urls if urlsplit(each).scheme == scheme), urls[0]))
    host = properties.get("rest.advertised.host.name", "").strip() or chosen.hostname or "localhost"
    if host in _WILDCARDS:
        host = socket.gethostname()
    port = properties.get("rest.advertised.port", "").strip() or chosen.port
    shown = f"[{host}]" if ":" in host else host
    return f"{chosen.scheme}://{shown}:{port}/"


async def first_of(*waiting: asyncio.Future[str]) -> str:
    """Return the first result, and cancel the others."""
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in pending:
        each.cancel()
    return done.pop().result()
