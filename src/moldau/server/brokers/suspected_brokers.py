"""Brokers suspected to have failed; Metadata responses wait until the suspicion is confirmed or refuted.

When a broker fails, its clients lose their connections and request metadata from other brokers immediately.
Metadata from before the failover would send them back to the failed broker, and they would retry only after a
second or more. Metadata requests therefore wait while a broker is suspected: until it accepts connections,
until the metadata shows it as fenced, or until a timeout.

A broker that has failed remains listed for a moment: librdkafka drops everything about a broker that is no
longer listed, including the partitions it is moving to their new leaders, and finds them only a second later.
"""

from __future__ import annotations

import asyncio

from moldau.base.clock import Clock
from moldau.metadata.image import MetadataImage
from moldau.network.connector import Connector
from moldau.network.peer import is_refused
from moldau.server.brokers.peers import endpoint_of
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.server.tasks import BackgroundTasks

#: Longer than a failover including a controller failover, shorter than the request timeouts of clients.
_MAX_WAIT_SECONDS = 2.0
_LISTED_SECONDS = 2.0


class SuspectedBrokers:
    def __init__(
        self,
        metadata: MetadataPublisher,
        settings: NodeSettings,
        clock: Clock,
        tasks: BackgroundTasks,
        connector: Connector,
    ) -> None:
        self._metadata = metadata
        self._settings = settings
        self._clock = clock
        self._tasks = tasks
        self._connector = connector
        self._suspected: dict[int, asyncio.Future[None]] = {}
        #: The time at which each failure was confirmed.
        self._failed: dict[int, float] = {}

    def __bool__(self) -> bool:
        return bool(self._suspected)

    def connection_lost(self, broker_id: int) -> None:
        """Suspect a broker: a connection to or from it was closed."""
        broker = self._metadata.image.cluster.brokers.get(broker_id)
        if broker is None or not broker.is_active or broker_id in self._suspected:
            return
        self._suspected[broker_id] = asyncio.get_running_loop().create_future()
        self._tasks.start(self._check(broker_id, broker.epoch))

    async def settled(self) -> None:
        """Wait until the current suspicions are confirmed or refuted."""
        # Shielded: a cancelled waiter must not cancel the futures of the others.
        await asyncio.gather(*map(asyncio.shield, self._suspected.values()))

    def recently_failed(self) -> list[int]:
        """Return the failed brokers that Metadata responses still list."""
        if not self._failed:
            return []
        now = self._clock.monotonic()
        self._failed = {each: since for each, since in self._failed.items() if now - since < _LISTED_SECONDS}
        return list(self._failed)

    async def _check(self, broker_id: int, epoch: int) -> None:
        def failed_over(image: MetadataImage) -> bool:
            broker = image.cluster.brokers.get(broker_id)
            return broker is None or broker.fenced or broker.epoch != epoch

        listener = self._settings.config.inter_broker_listener_name
        try:
            endpoint = endpoint_of(self._metadata.image, broker_id, listener)
            if endpoint is not None and await is_refused(
                endpoint.host, endpoint.port, connector=self._connector
            ):
                await self._metadata.until(failed_over, _MAX_WAIT_SECONDS)
                self._failed[broker_id] = self._clock.monotonic()
        finally:
            self._suspected.pop(broker_id).set_result(None)
