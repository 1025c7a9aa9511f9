"""`ClusterView`: a cluster as one user sees it, with its snapshot and its connections.

One task refreshes snapshot and lag: every two seconds while pages are open, rarely otherwise. Pages never
query the cluster for lists; an action requests a refresh and waits for it, so that its effect is visible.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from moldau.base.clock import Clock, SystemClock
from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.client.admin.client import AsyncAdminClient
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.console.cluster.collection import Collection
from moldau.console.cluster.history import History
from moldau.console.cluster.shared import SharedAnswers, SharedStreams
from moldau.console.cluster.snapshot import Snapshot
from moldau.console.settings import DEFAULT_LAG_WINDOW_S
from moldau.lag.evaluation.state import LagRules
from moldau.lag.evaluation.verdicts import LagSnapshot
from moldau.lag.monitor import LagMonitor

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0
_IDLE_INTERVAL_S: Final = 15.0
#: Observations of the lag per window.
_MIN_ROUNDS: Final = 4
_WATCHED_S: Final = 30.0
#: An older snapshot is refreshed before a page shows it.
_MAX_AGE_S: Final = 4.0
_REQUEST_TIMEOUT_MS: Final = 3_000
#: A request to a broker that is gone is given up soon: the next refresh asks again.
_RETRY_MS: Final = 1_000
_PATIENCE_S: Final = 5.0
_START_MS: Final = 5_000
_CLIENT_ID: Final = "moldau-console"


class ClusterView:
    def __init__(
        self,
        name: str,
        settings: ClientSettings,
        clock: Clock | None = None,
        *,
        lag_window_s: float = DEFAULT_LAG_WINDOW_S,
    ) -> None:
        self.name = name
        self.settings = replace(settings, client_id=_CLIENT_ID)
        self.snapshot = Snapshot()
        self.history = History()
        #: For the actions of users.
        self.admin = AsyncAdminClient(replace(self.settings, api_timeout_ms=15_000))
        self._clock = clock or SystemClock()
        #: What single pages request of the cluster.
        self.shared = SharedAnswers(self._clock)
        self.streams = SharedStreams()
        background = replace(self.settings, request_timeout_ms=_REQUEST_TIMEOUT_MS, api_timeout_ms=_RETRY_MS)
        self._cluster = Cluster(background)
        self._collection = Collection(self._cluster)
        # A window is a few rounds, also while no page is open.
        self._interval_s = min(INTERVAL_S, lag_window_s / _MIN_ROUNDS)
        self._idle_interval_s = min(_IDLE_INTERVAL_S, lag_window_s / _MIN_ROUNDS)
        rules = LagRules(round(lag_window_s * 1000), round(self._interval_s * 1000))
        self.monitor = LagMonitor(background, rules)
        self._changed = asyncio.Condition()
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._requested = 0
        self._watched_until = 0.0
        self._finished_s = 0.0

    @property
    def lag(self) -> LagSnapshot:
        return self.monitor.snapshot

    @property
    def cluster(self) -> Cluster:
        return self.admin.cluster

    async def start(self) -> None:
        """Take the first snapshot and continue in the background.

        `KafkaError` if the cluster cannot be reached; the background continues nevertheless.
        """
        if self._task is not None:
            return
        try:
            await self._cluster.retry(self._cluster.refresh, timeout_ms=_START_MS)
            await self._refresh_once()
        except KafkaError as error:
            self.snapshot = replace(self.snapshot, error=str(error))
            self.monitor.snapshot = replace(self.monitor.snapshot, error=str(error))
            raise
        finally:
            self._task = asyncio.create_task(self._refresh_always())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.monitor.close()
        await self.admin.close()
        self._cluster.close()

    async def watch(self) -> Snapshot:
        """Return the snapshot for a page: a recent one if the cluster answers in time."""
        idle = self._clock.monotonic() > self._watched_until
        self._watched_until = self._clock.monotonic() + _WATCHED_S
        if idle:
            self._wanted.set()
        if self._clock.monotonic() - self._finished_s > _MAX_AGE_S and self.snapshot.error is None:
            await self.refreshed()
        return self.snapshot

    async def refreshed(self) -> Snapshot:
        """Wait for a snapshot that was begun after this call; a few seconds at most."""
        self.shared.clear()
        self._requested += 1
        wanted = self.snapshot.version + (2 if self._refreshing else 1)
        self._wanted.set()
        await self.newer(wanted - 1, _PATIENCE_S)
        return self.snapshot

    async def newer(self, version: int, timeout_s: float) -> bool:
        """Wait for a snapshot after this version; return whether there is one."""
        self._watched_until = self._clock.monotonic() + _WATCHED_S
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: self.snapshot.version > version)
        except TimeoutError:
            return False
        return True

    async def _refresh_always(self) -> None:
        while True:
            watched = self._clock.monotonic() < self._watched_until
            try:
                await asyncio.wait_for(
                    self._wanted.wait(), self._interval_s if watched else self._idle_interval_s
                )
            except TimeoutError:
                pass
            self._wanted.clear()
            await self._refresh_once()

    _refreshing = False

    async def _refresh_once(self) -> None:
        version = self.snapshot.version + 1
        self._refreshing = True
        try:
            after, _ = await asyncio.gather(
                self._collection.collect(self._clock.time_ms(), version), self._observe_lag()
            )
            self.history.add(after)
        except (KafkaError, OSError) as error:
            logger.info(
                "The cluster %s could not be read: %s",
                self.name,
                error,
                extra=event("console.cluster_failed", cluster=self.name),
            )
            after = replace(self.snapshot, version=version, error=str(error))
        finally:
            self._refreshing = False
        self._finished_s = self._clock.monotonic()
        async with self._changed:
            self.snapshot = after
            self._changed.notify_all()

    async def _observe_lag(self) -> None:
        observed = await self.monitor.observe_or_keep()
        if observed.error is None:
            self.history.add_lag(observed)
