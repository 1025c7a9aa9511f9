"""The fetchers of a node: for every leader it follows `num.replica.fetchers` of them at most.

A partition belongs to one of them by its name. One whose leader is not known, or has no endpoint for other
brokers, waits here until the metadata knows better. Nothing is fetched before this broker is registered:
leaders must know which life of it they hear from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.base.errors import KafkaError
from moldau.base.java_hash import string_hash
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.image import ClusterImage
from moldau.network.client import OpenConnection
from moldau.replication.fetcher import Fetcher
from moldau.replication.following import PartitionKey
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.throttles import Throttle
from moldau.storage.log_manager import LogManager


class Fetchers:
    def __init__(
        self,
        broker: LocalBroker,
        logs: LogManager,
        throttle: Throttle,
        storage_failed: Callable[[KafkaError], None],
        open_connection: OpenConnection | None,
    ) -> None:
        self._broker = broker
        self._logs = logs
        self._throttle = throttle
        self._storage_failed = storage_failed
        self._open_connection = open_connection
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        #: Who follows what; None while the leader cannot be found.
        self._followed: dict[PartitionKey, tuple[Partition, Fetcher | None]] = {}
        self._closing: dict[asyncio.Task[None], None] = {}
        self._begun = False
        #: Where leaders are found, as long as the brokers and the settings are the same.
        self._addresses: dict[int, tuple[str, int] | None] = {}
        self._addresses_of: tuple[ClusterImage, BrokerConfig] | None = None

    def begin(self) -> None:
        self._begun = True
        self.brokers_changed()

    def follow(self, key: PartitionKey, partition: Partition) -> None:
        """Fetch from the leader that the partition has now, in its present epoch."""
        self.unfollow(key)
        fetcher = self._fetcher(partition)
        self._followed[key] = (partition, fetcher)
        if fetcher is not None:
            fetcher.add(key, partition)

    def unfollow(self, key: PartitionKey) -> None:
        _, fetcher = self._followed.pop(key, (None, None))
        if fetcher is not None:
            fetcher.remove(key)

    def brokers_changed(self) -> None:
        """Leaders may be found elsewhere than before, or at all; or there is another number of fetchers."""
        for key, (partition, fetcher) in list(self._followed.items()):
            if fetcher is None or self._place(partition) != self._place_of(fetcher):
                self.follow(key, partition)

    def close_idle(self) -> None:
        for place, fetcher in list(self._fetchers.items()):
            if not len(fetcher):
                del self._fetchers[place]
                task = asyncio.get_running_loop().create_task(fetcher.close())
                self._closing[task] = None
                task.add_done_callback(lambda ended: self._closing.pop(ended, None))

    async def close(self) -> None:
        self._begun = False
        self._followed.clear()
        fetchers, self._fetchers = list(self._fetchers.values()), {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers), *self._closing)

    def _fetcher(self, partition: Partition) -> Fetcher | None:
        place = self._place(partition)
        if place is None or not self._begun:
            return None
        leader, number, address = place
        known = self._fetchers.get((leader, number))
        if known is not None and known.address == address:
            return known
        # One with another address loses its partitions one by one, and then closes.
        fetcher = Fetcher(
            self._broker,
            self._logs,
            self._throttle,
            self._storage_failed,
            leader=leader,
            number=number,
            address=address,
            open_connection=self._open_connection,
        )
        if known is not None:
            self._fetchers[leader, -1 - len(self._fetchers)] = known
        self._fetchers[leader, number] = fetcher
        return fetcher

    def _place(self, partition: Partition) -> tuple[int, int, tuple[str, int]] | None:
        """Leader, number of the fetcher, address of the leader."""
        leader = partition.registration.leader
        address = self._address(leader)
        if address is None:
            return None
        topic, index = partition.topic_partition
        number = abs(31 * string_hash(topic) + index) % self._broker.config.integer("num.replica.fetchers")
        return leader, number, address

    def _place_of(self, fetcher: Fetcher) -> tuple[int, int, tuple[str, int]]:
        return fetcher.leader, fetcher.number, fetcher.address

    def _address(self, leader: int) -> tuple[str, int] | None:
        """Looked up once for the thousands of partitions that a leader may have."""
        cluster, config = self._broker.image.cluster, self._broker.config
        known = self._addresses_of
        if known is None or known[0] is not cluster or known[1] is not config:
            self._addresses, self._addresses_of = {}, (cluster, config)
        if leader not in self._addresses:
            broker = self._broker.broker(leader)
            endpoint = None if broker is None else broker.endpoint(config.inter_broker_listener_name)
            self._addresses[leader] = None if endpoint is None else (endpoint.host, endpoint.port)
        return self._addresses[leader]
