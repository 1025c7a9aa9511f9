"""The replica fetchers of a broker: up to `num.replica.fetchers` for each leader.

A partition is assigned to one of them by a hash of its name. A partition whose leader is unknown, or has no
endpoint for other brokers, waits for the next metadata change. Fetching starts after this broker is
registered, because leaders check its broker epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from moldau.base.errors import KafkaError
from moldau.base.java_hash import string_hash
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.image import ClusterImage
from moldau.network.connector import Connector
from moldau.replication.fetch_session import FollowedPartition, PartitionKey
from moldau.replication.fetcher import Fetcher
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.throttles import Throttle
from moldau.storage.manager.manager import LogManager


class Fetchers:
    def __init__(
        self,
        broker: LocalBroker,
        logs: LogManager,
        throttle: Throttle,
        storage_failed: Callable[[KafkaError], None],
        connector: Connector,
    ) -> None:
        self._broker = broker
        self._logs = logs
        self._throttle = throttle
        self._storage_failed = storage_failed
        self._connector = connector
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        #: Partition and fetcher; None while the leader's address is unknown.
        self._followed: dict[PartitionKey, tuple[Partition, Fetcher | None]] = {}
        self._closing: dict[asyncio.Task[None], None] = {}
        self._started = False
        #: Addresses of leaders, valid for one cluster image and configuration.
        self._addresses: dict[int, tuple[str, int] | None] = {}
        self._addresses_of: tuple[ClusterImage, BrokerConfig] | None = None

    def begin(self) -> None:
        self._started = True
        self.brokers_changed()

    def follow(self, key: PartitionKey, partition: Partition) -> None:
        """Fetch from the present leader of the partition, in its present leader epoch."""
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
        """Reassign partitions after leaders' addresses or `num.replica.fetchers` changed."""
        for key, (partition, fetcher) in list(self._followed.items()):
            if fetcher is None or self._place(partition) != self._place_of(fetcher):
                self.follow(key, partition)

    def followed(self) -> Iterator[FollowedPartition]:
        """Iterate over the partitions that are being followed."""
        for fetcher in list(self._fetchers.values()):
            yield from fetcher

    def __iter__(self) -> Iterator[Fetcher]:
        return iter(list(self._fetchers.values()))

    @property
    def failed_count(self) -> int:
        """The partitions that their fetcher does not follow any more, until the metadata changes.

        As in Kafka, replicas in a failed log directory do not count: they are offline.
        """
        return sum(
            fetcher is not None and key not in fetcher and partition.log is not None
            for key, (partition, fetcher) in self._followed.items()
        )

    def close_idle(self) -> None:
        for place, fetcher in list(self._fetchers.items()):
            if not len(fetcher):
                del self._fetchers[place]
                task = asyncio.get_running_loop().create_task(fetcher.close())
                self._closing[task] = None
                task.add_done_callback(lambda ended: self._closing.pop(ended, None))

    async def close(self) -> None:
        self._started = False
        self._followed.clear()
        fetchers, self._fetchers = list(self._fetchers.values()), {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers), *self._closing)

    def _fetcher(self, partition: Partition) -> Fetcher | None:
        place = self._place(partition)
        if place is None or not self._started:
            return None
        leader, number, address = place
        known = self._fetchers.get((leader, number))
        if known is not None and known.address == address:
            return known
        # A fetcher with an old address loses its partitions one by one and is closed when idle.
        fetcher = Fetcher(
            self._broker,
            self._logs,
            self._throttle,
            self._storage_failed,
            leader=leader,
            number=number,
            address=address,
            connector=self._connector,
        )
        if known is not None:
            self._fetchers[leader, -1 - len(self._fetchers)] = known
        self._fetchers[leader, number] = fetcher
        return fetcher

    def _place(self, partition: Partition) -> tuple[int, int, tuple[str, int]] | None:
        """Return leader, fetcher number and address of the leader."""
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
        """Return the address of a leader; cached, because a leader may have thousands of partitions."""
        cluster, config = self._broker.image.cluster, self._broker.config
        known = self._addresses_of
        if known is None or known[0] is not cluster or known[1] is not config:
            self._addresses, self._addresses_of = {}, (cluster, config)
        if leader not in self._addresses:
            broker = self._broker.broker(leader)
            endpoint = None if broker is None else broker.endpoint(config.inter_broker_listener_name)
            self._addresses[leader] = None if endpoint is None else (endpoint.host, endpoint.port)
        return self._addresses[leader]
