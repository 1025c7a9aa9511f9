"""Brokers whose connections have just broken, and clients that ask for the metadata at that very moment.

When a broker dies its clients lose their connections too, and ask the others at once who leads now. An answer
from before the failover would send them back to the dead one, and they ask again only after a second or more.
So whoever asks is kept waiting while a broker is suspected: until it turns out to be there after all, until
the metadata says that it is gone, or until that takes too long.

A broker that turned out to be gone is still listed for a moment: librdkafka drops everything about a broker
that it no longer hears of, and with it the partitions that it is just moving to their new leaders; it finds
them again only a second later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.metadata.image import MetadataImage
from moldau.network.peer import is_refused
from moldau.server.brokers.peers import endpoint_of

if TYPE_CHECKING:
    from moldau.server.node import Node

#: Longer than a failover with a new controller takes, shorter than the patience of clients.
_LONGEST_SECONDS = 2.0
_LISTED_SECONDS = 2.0


class Suspects:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._looking: dict[int, asyncio.Future[None]] = {}
        #: When each was found to be gone.
        self._departed: dict[int, float] = {}

    def __bool__(self) -> bool:
        return bool(self._looking)

    def lost(self, broker_id: int) -> None:
        """A connection to or from this broker has ended."""
        broker = self._node.image.cluster.brokers.get(broker_id)
        if broker is None or not broker.is_active or broker_id in self._looking:
            return
        self._looking[broker_id] = asyncio.get_running_loop().create_future()
        self._node.in_background(self._look(broker_id, broker.epoch))

    async def settled(self) -> None:
        """Until nobody is suspected of those who are now."""
        # Who gives up waiting does not end what others wait for.
        await asyncio.gather(*map(asyncio.shield, self._looking.values()))

    def departed(self) -> list[int]:
        """Brokers that clients should still find listed."""
        if not self._departed:
            return []
        now = self._node.clock.monotonic()
        self._departed = {
            each: since for each, since in self._departed.items() if now - since < _LISTED_SECONDS
        }
        return list(self._departed)

    async def _look(self, broker_id: int, epoch: int) -> None:
        def moved(image: MetadataImage) -> bool:
            broker = image.cluster.brokers.get(broker_id)
            return broker is None or broker.fenced or broker.epoch != epoch

        node = self._node
        try:
            endpoint = endpoint_of(node.image, broker_id, node.config.inter_broker_listener_name)
            if endpoint is not None and await is_refused(
                endpoint.host, endpoint.port, open_connection=node.open_connection
            ):
                await node.publisher.until(moved, _LONGEST_SECONDS)
                self._departed[broker_id] = node.clock.monotonic()
        finally:
            self._looking.pop(broker_id).set_result(None)
