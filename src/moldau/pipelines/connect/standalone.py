"""A standalone worker: connectors from files, offsets in a file, and the REST API."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from moldau.base.clock import SystemClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.http.asgi import Application as AsgiApplication
from moldau.http.errors import ApiError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.rest.application import Application
from moldau.pipelines.connect.service import (
    advertised_url,
    client_settings,
    cluster_id,
    create_host,
    worker_id,
    worker_settings,
)
from moldau.pipelines.connect.storage.log import MemoryLog
from moldau.pipelines.connect.storage.offset_file import OffsetFile
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.worker.assignment import Alone
from moldau.pipelines.connect.worker.herder import Herder
from moldau.pipelines.connect.worker.reports import Reports

logger = logging.getLogger(__name__)

_NAME: Final = "name"


class StandaloneWorker:
    """Implements `moldau.http.run.Service`."""

    def __init__(self, properties: Mapping[str, str], connectors: Sequence[Mapping[str, str]]) -> None:
        self._settings, self._providers = worker_settings(properties, standalone=True)
        self._plugins = Plugins(worker=self._settings.properties)
        self._connectors = connectors
        self._host = create_host(self._settings, self._plugins)
        self._started = False

    @property
    def application(self) -> AsgiApplication:
        return self._application

    async def start(self, urls: Sequence[str]) -> None:
        """Read the offsets, and start the connectors; `KafkaError` if one is not valid."""
        found = await cluster_id(client_settings(self._settings))
        if self._settings.offset_file is None:
            raise RuntimeError("A standalone worker has an offsets file.")
        store = Store(MemoryLog(), MemoryLog(), OffsetFile(self._settings.offset_file))
        group = Alone(store.configs)
        reports = Reports(
            store,
            worker_id(advertised_url(urls, self._settings.properties)),
            lambda: group.generation,
            SystemClock().time_ms,
            track_topics=self._settings.topic_tracking,
            hide=self._providers.hide,
        )
        self._herder = Herder(
            self._settings, self._plugins, self._providers, store, group, self._host, reports
        )
        self._application = Application(self._herder, found)
        await self._host.start(store)
        self._started = True
        await store.start(self._herder.changed)
        self._herder.start()
        for each in self._connectors:
            await self._create(each)

    async def _create(self, config: Mapping[str, str]) -> None:
        name = config.get(_NAME, "")
        try:
            await self._herder.put_config(name, config, may_replace=False)
        except ApiError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Connector {name}: {error.message}") from None
        except TimeoutError:
            logger.warning("Connector %s has not started yet; the worker continues without waiting", name)

    async def close(self) -> None:
        if self._started:
            await self._herder.close()
        await self._host.close()

    async def failed(self) -> str:
        return await self._host.failed()
