"""A distributed worker: the state in topics, membership in the group of workers, and the REST API."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from moldau.base.clock import SystemClock
from moldau.http.asgi import Application as AsgiApplication
from moldau.pipelines.connect.config.worker import GroupSettings, StorageTopic, WorkerSettings
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.rest.application import Application
from moldau.pipelines.connect.rest.forwarding import Forwarding
from moldau.pipelines.connect.rest.internal import InternalRoutes
from moldau.pipelines.connect.service import (
    advertised_url,
    client_settings,
    cluster_id,
    create_host,
    forwarding_context,
    worker_id,
    worker_settings,
)
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.storage.topics.topic_log import TopicLog
from moldau.pipelines.connect.storage.types import TaskId
from moldau.pipelines.connect.worker.group.fencing import Fencing
from moldau.pipelines.connect.worker.group.membership import Hooks, Membership
from moldau.pipelines.connect.worker.group.session_key import SessionKeys
from moldau.pipelines.connect.worker.herder import Herder
from moldau.pipelines.connect.worker.reports import Reports


class DistributedWorker:
    """Implements `moldau.http.run.Service`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._settings, self._providers = worker_settings(properties, standalone=False)
        self._group_settings, topics = _required(self._settings)
        self._client = client_settings(self._settings)
        self._clock = SystemClock()
        self._plugins = Plugins(worker=self._settings.properties)
        self._host = create_host(self._settings, self._plugins)
        config, status, offset = topics
        self._config_log = TopicLog(self._client, config, self._clock, follows=True)
        self._store = Store(
            self._config_log,
            TopicLog(self._client, status, self._clock),
            TopicLog(self._client, offset, self._clock),
        )
        self._keys = SessionKeys(self._store, self._group_settings.key_ttl_ms, self._clock)
        self._started = asyncio.Event()

    @property
    def application(self) -> AsgiApplication:
        return self._application

    async def start(self, urls: Sequence[str]) -> None:
        """Read the state, and join the group; `KafkaError` if the topics cannot be used."""
        found = await cluster_id(self._client)
        url = advertised_url(urls, self._settings.properties)
        fencing = Fencing(self._client, self._group_settings.group_id, self._store)
        self._forwarding = Forwarding(self._keys, fencing, forwarding_context(self._settings.properties))
        self._group = Membership(
            self._client,
            self._group_settings,
            url,
            self._store.configs,
            Hooks(self._config_log.read_to_end, self._revoke, self._assigned, self._leading),
            self._clock,
        )
        reports = Reports(
            self._store,
            worker_id(url),
            lambda: self._group.generation,
            self._clock.time_ms,
            track_topics=self._settings.topic_tracking,
            hide=self._providers.hide,
        )
        self._herder = Herder(
            self._settings,
            self._plugins,
            self._providers,
            self._store,
            self._group,
            self._host,
            reports,
            self._forwarding,
        )
        internal = InternalRoutes(self._keys)
        self._application = Application(self._herder, found, self._forwarding, internal.routes)
        await self._host.start(self._store)
        await self._store.start(self._herder.changed)
        self._herder.start()
        self._group.start()
        self._renewing = asyncio.create_task(self._keys.keep(lambda: self._group.leads))
        self._started.set()

    async def close(self) -> None:
        if self._started.is_set():
            self._renewing.cancel()
            await self._herder.close()
            await self._group.close()
            await self._forwarding.close()
        await self._store.close()
        await self._host.close()

    async def failed(self) -> str:
        """Wait until the topics, the group or Spark cannot be used any more, and return the reason."""
        await self._started.wait()
        waiting = [
            asyncio.ensure_future(each.failed()) for each in (self._config_log, self._group, self._host)
        ]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for each in waiting:
                each.cancel()

    async def _revoke(self, connectors: list[str], tasks: list[TaskId]) -> None:
        await self._herder.runtime.revoke(connectors, tasks)

    def _assigned(self) -> None:
        self._herder.changed()

    async def _leading(self, leads: bool) -> None:
        """Fence earlier leaders, if sources are exactly once, and create the key of the group."""
        transactional = self._settings.fences_leaders and leads
        group_id = self._group_settings.group_id
        await self._config_log.writer.take_over(f"connect-cluster-{group_id}" if transactional else None)
        if leads:
            await self._config_log.read_to_end()
            await self._keys.renew()


def _required(
    settings: WorkerSettings,
) -> tuple[GroupSettings, tuple[StorageTopic, StorageTopic, StorageTopic]]:
    group, config = settings.group, settings.config_topic
    status, offset = settings.status_topic, settings.offset_topic
    if group is None or config is None or status is None or offset is None:
        raise RuntimeError("A distributed worker has a group and topics.")
    return group, (config, status, offset)
