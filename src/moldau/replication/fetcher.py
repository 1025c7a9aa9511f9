"""Copy partitions from one leader: a task that fetches, appends and fetches again, over one connection.

How it works. Requests belong to a fetch session and contain only what has changed. The leader responds when
it has new records, or after `replica.fetch.wait.max.ms`; batches are appended as they are. A partition that
is added while the leader delays its response is sent at once, in a second request; a Moldau leader responds
to the first request when it receives the second.

- A response applies only to the positions of its request: a partition with another leader epoch, or another
  log end offset by now, ignores it.
- A partition that fails is left out with exponential back-off while the others continue. One with a fenced
  leader epoch or a failed log directory is left out until the metadata changes.
- Long responses are applied in slices, so that the loop handles requests in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.base.log_throttle import LogThrottle
from moldau.base.loop_slice import LoopSlice
from moldau.network.connector import Connector
from moldau.network.peer import Peer
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from moldau.protocol.schema import Message
from moldau.replication.fetch_session import (
    FetchSession,
    FollowedPartition,
    PartitionKey,
    by_topic,
    forgotten_by_topic,
)
from moldau.replication.follower_append import FollowerAppend
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.throttles import Throttle
from moldau.storage.disk.disk import LogDirectoryFailed
from moldau.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)

#: The first delay of a partition that cannot be fetched; `replica.fetch.backoff.ms` is the longest.
_INITIAL_BACKOFF_MS = 10
#: Requests of one session in flight.
_MAX_IN_FLIGHT = 2


class Fetcher:
    """Runs from the first `add` until `close`."""

    def __init__(
        self,
        broker: LocalBroker,
        logs: LogManager,
        throttle: Throttle,
        storage_failed: Callable[[KafkaError], None],
        *,
        leader: int,
        number: int,
        address: tuple[str, int],
        connector: Connector,
    ) -> None:
        self.leader = leader
        self.number = number
        self.address = address
        self._broker = broker
        self._throttle = throttle
        self._storage_failed = storage_failed
        self._peer = Peer(
            *address,
            client_id=f"broker-{broker.id}-fetcher-{number}",
            connector=connector,
            on_lost=lambda: broker.on_lost(leader),
        )
        self._append = FollowerAppend(broker, logs, self._call)
        self._followed: dict[PartitionKey, FollowedPartition] = {}
        #: Partitions whose position may differ from the reported one.
        self._changed: dict[PartitionKey, None] = {}
        self._session = FetchSession()
        self._in_flight: deque[tuple[int, FetchSession, asyncio.Task[FetchResponse]]] = deque()
        self._number = 0
        self._changes = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._backing_off = False
        self._log_throttle = LogThrottle()
        #: Fetch requests that were sent.
        self.requests = 0

    @property
    def name(self) -> str:
        """The name of this fetcher as in Kafka's metrics."""
        return f"ReplicaFetcherThread-{self.number}-{self.leader}"

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, key: PartitionKey) -> bool:
        """Return whether a partition is followed; one that failed is not, until it is added again."""
        return key in self._followed

    def __iter__(self) -> Iterator[FollowedPartition]:
        return iter(list(self._followed.values()))

    def add(self, key: PartitionKey, partition: Partition) -> None:
        """Follow the leader in the present leader epoch of the partition."""
        self._followed[key] = FollowedPartition(key, partition)
        self._refetch([key])
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, key: PartitionKey) -> None:
        if self._followed.pop(key, None) is not None:
            self._changed[key] = None

    async def close(self) -> None:
        self._followed.clear()
        tasks: list[asyncio.Task[Any]] = [task for _, _, task in self._in_flight]
        if self._task is not None:
            tasks.append(self._task)
        for task in tasks:
            task.cancel()
        self._peer.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    # The task.

    async def _run(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as error:  # noqa: BLE001  no other task follows these partitions
                await self._back_off(error)

    async def _step(self) -> None:
        if not self._in_flight and not self._send():
            self._changes.clear()
            await self._changes.wait()
            return
        number, session, task = self._in_flight[0]
        response = await task
        self._in_flight.popleft()
        await self._handle_response(number, session, response)
        self._log_throttle.reset()

    def _refetch(self, keys: Iterable[PartitionKey]) -> None:
        """Report the positions of these partitions; at once if the leader delays its response."""
        self._changed.update(dict.fromkeys(keys))
        self._changes.set()
        if (
            0 < len(self._in_flight) < _MAX_IN_FLIGHT
            and self._session.is_established
            and not self._backing_off
        ):
            self._send()

    def _send(self) -> bool:
        request = self._request()
        if request is None:
            return False
        session = self._session
        session.sent()
        self.requests += 1
        task = asyncio.get_running_loop().create_task(self._call(request))
        self._in_flight.append((self._number, session, task))
        return True

    async def _call(self, request: Message) -> Any:
        return await self._peer.call(
            request, timeout_ms=self._broker.config.integer("replica.socket.timeout.ms")
        )

    async def _back_off(self, error: Exception) -> None:
        """Drop the session and wait `replica.fetch.backoff.ms`: the leader cannot be reached."""
        if self._log_throttle.is_due(self._broker.clock.monotonic(), str(error)):
            trace = None if isinstance(error, KafkaError) else error
            logger.warning(
                "fetching from broker %d failed: %s",
                self.leader,
                error,
                exc_info=trace,
                extra=event("fetcher.failed", leader=self.leader),
            )
        self._session = FetchSession()
        cancelled, self._in_flight = [task for _, _, task in self._in_flight], deque()
        for task in cancelled:
            task.cancel()
        await asyncio.gather(*cancelled, return_exceptions=True)
        self._backing_off = True
        try:
            await asyncio.sleep(self._broker.config.integer("replica.fetch.backoff.ms") / 1000)
        finally:
            self._backing_off = False

    # Requests.

    def _request(self) -> FetchRequest | None:
        """Return the next fetch request; None if no partition is ready."""
        self._number += 1
        session, config = self._session, self._broker.config
        candidates = list(self._followed if session.is_new else self._changed)
        self._changed.clear()
        fetched: list[tuple[PartitionKey, FetchPartition]] = []
        forgotten: list[PartitionKey] = []
        for key in candidates:
            followed = self._followed.get(key)
            if followed is None or not self._is_ready(followed):
                if session.members.pop(key, key) is None:
                    forgotten.append(key)
            elif (partition := self._fetch_partition(followed)) is not None:
                session.members[key] = None
                fetched.append((key, partition))
        if not session.members and not forgotten:
            return None
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self._broker.id, replica_epoch=self._broker.epoch()),
            # Without delay, so that partitions added meanwhile follow in the second request.
            max_wait_ms=0 if session.is_new else config.integer("replica.fetch.wait.max.ms"),
            min_bytes=config.integer("replica.fetch.min.bytes"),
            max_bytes=config.integer("replica.fetch.response.max.bytes"),
            session_id=session.id,
            session_epoch=session.epoch,
            topics=by_topic(fetched),
            forgotten_topics_data=forgotten_by_topic(forgotten),
        )

    def _is_ready(self, followed: FollowedPartition) -> bool:
        if followed.delayed:
            return False
        behind = followed.lag is None or followed.lag > 0
        throttle = self._throttle
        if behind and throttle.covers(*followed.partition.topic_partition) and throttle.is_exceeded():
            self._delay(followed, self._broker.config.integer("replica.fetch.backoff.ms") / 1000)
            return False
        return followed.position() is not None

    def _fetch_partition(self, followed: FollowedPartition) -> FetchPartition | None:
        """Return the partition's part of a request; None if its position is already reported."""
        position = followed.position()
        if position is None or (position == followed.reported and followed.key in self._session.members):
            return None
        followed.reported, followed.fetched_in = position, self._number
        return FetchPartition(
            partition=followed.key[1],
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.offset,
            last_fetched_epoch=position.last_fetched_epoch,
            log_start_offset=position.log_start_offset,
            partition_max_bytes=self._broker.config.integer("replica.fetch.max.bytes"),
        )

    # Responses.

    async def _handle_response(self, number: int, session: FetchSession, response: FetchResponse) -> None:
        reason = session.handle_response(response)
        if reason is not None and session is self._session:
            if reason:
                logger.info("the fetch session with broker %d ended: %s", self.leader, reason.name)
            self._session = FetchSession()
        turn = LoopSlice(self._broker.clock)
        for topic in response.responses:
            for data in topic.partitions:
                followed = self._followed.get((topic.topic_id, data.partition_index))
                if followed is None or followed.fetched_in > number:
                    continue
                await self._apply(followed, data, turn)
                await turn.pause()

    async def _apply(self, followed: FollowedPartition, data: PartitionData, turn: LoopSlice) -> None:
        try:
            await self._append.apply(followed, data, self._is_current, turn)
            followed.failures = 0
            self._record(followed, data.records)
            self._changed[followed.key] = None
        except KafkaError as error:
            self._failed(followed, error)
        except Exception:  # the other partitions of this leader continue
            logger.exception("%s is not followed any more", followed.partition.topic_partition)
            if self._is_current(followed):
                self.remove(followed.key)

    def _is_current(self, followed: FollowedPartition) -> bool:
        return self._followed.get(followed.key) is followed

    def _record(self, followed: FollowedPartition, records: Any) -> None:
        if records and self._throttle.covers(*followed.partition.topic_partition):
            self._throttle.record(len(records))

    # Failures.

    def _failed(self, followed: FollowedPartition, error: KafkaError) -> None:
        if not self._is_current(followed):
            return
        self._storage_failed(error)
        if isinstance(error, LogDirectoryFailed) or error.code is ErrorCode.FENCED_LEADER_EPOCH:
            logger.warning("%s is not followed any more: %s", followed.partition.topic_partition, error)
            self.remove(followed.key)
            return
        backoff = Backoff.of_ms(_INITIAL_BACKOFF_MS, self._broker.config.integer("replica.fetch.backoff.ms"))
        followed.failures += 1
        delay = backoff.seconds(followed.failures)
        # A lasting error is logged after 1, 2, 4, … failures at the longest delay.
        is_notable = delay == backoff.maximum_seconds and followed.failures.bit_count() == 1
        level = logging.WARNING if is_notable else logging.DEBUG
        logger.log(level, "%s cannot be followed yet: %s", followed.partition.topic_partition, error)
        self._delay(followed, delay)

    def _delay(self, followed: FollowedPartition, seconds: float) -> None:
        followed.delayed = True
        self._changed[followed.key] = None
        asyncio.get_running_loop().call_later(seconds, self._retry, followed)

    def _retry(self, followed: FollowedPartition) -> None:
        followed.delayed = False
        if self._is_current(followed):
            self._refetch([followed.key])
