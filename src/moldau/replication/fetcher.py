"""Copies from one leader: a task that fetches, appends, and fetches again, over one connection.

How it works. Every request names in a session what changed since the last one; the leader answers when there
is something new, or after `replica.fetch.wait.max.ms`. What is fetched goes to the logs batch by batch as it
came. A partition that is added while the leader waits is asked for at once, in a second request behind the
first: a leader of ours answers the first when it sees the second.

- An answer counts only for what was asked in it: a partition that has another leader epoch by now, or whose
  log ends elsewhere, ignores it.
- A partition that fails is left out for a while, a short one first; the others go on. One whose epoch is
  fenced, or whose disk failed, is left out until the metadata says something new.
- Long answers are taken in slices, so that requests get their turn in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.log_throttle import Seldom
from moldau.base.loop_slice import LoopSlice
from moldau.network.client import OpenConnection
from moldau.network.peer import Peer
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from moldau.protocol.schema import Message
from moldau.replication.catching_up import CatchingUp
from moldau.replication.following import Following, PartitionKey
from moldau.replication.leader_session import LeaderSession, by_topic, forgotten_by_topic
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.throttles import Throttle
from moldau.storage.disk.disk import LogDirectoryFailed
from moldau.storage.log_manager import LogManager

log = logging.getLogger(__name__)

#: The first delay of a partition that cannot be fetched; `replica.fetch.backoff.ms` is the longest.
_INITIAL_BACKOFF_MS = 10
#: Requests of one session under way.
_MOST_UNDER_WAY = 2


class Fetcher:
    """Runs from the first partition on until `close`."""

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
        open_connection: OpenConnection | None,
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
            open_connection=open_connection,
            on_lost=lambda: broker.on_lost(leader),
        )
        self._catching_up = CatchingUp(broker, logs, self._call)
        self._following: dict[PartitionKey, Following] = {}
        #: Those whose position may be another than the leader was told.
        self._changed: dict[PartitionKey, None] = {}
        self._session = LeaderSession()
        self._under_way: deque[tuple[int, LeaderSession, asyncio.Task[FetchResponse]]] = deque()
        self._number = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._resting = False
        self._complaints = Seldom()

    # The owner calls these.

    def __len__(self) -> int:
        return len(self._following)

    def add(self, key: PartitionKey, partition: Partition) -> None:
        """Follow the leader in the epoch that the partition is in now."""
        self._following[key] = Following(key, partition)
        self._ask_again([key])
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, key: PartitionKey) -> None:
        if self._following.pop(key, None) is not None:
            self._changed[key] = None

    async def close(self) -> None:
        self._following.clear()
        tasks: list[asyncio.Task[Any]] = [task for _, _, task in self._under_way]
        if self._task is not None:
            tasks.append(self._task)
        for task in tasks:
            task.cancel()
        self._peer.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    # The loop of it.

    async def _run(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as error:  # noqa: BLE001  nobody else would ever follow these partitions again
                await self._rest(error)

    async def _step(self) -> None:
        if not self._under_way and not self._send():
            self._news.clear()
            await self._news.wait()
            return
        number, session, task = self._under_way[0]
        response = await task
        self._under_way.popleft()
        await self._take(number, session, response)
        self._complaints.over()

    def _ask_again(self, keys: Iterable[PartitionKey]) -> None:
        """Their positions are to be told; at once, if the leader is waiting with an answer."""
        self._changed.update(dict.fromkeys(keys))
        self._news.set()
        if 0 < len(self._under_way) < _MOST_UNDER_WAY and self._session.is_established and not self._resting:
            self._send()

    def _send(self) -> bool:
        request = self._request()
        if request is None:
            return False
        session = self._session
        session.sent()
        task = asyncio.get_running_loop().create_task(self._call(request))
        self._under_way.append((self._number, session, task))
        return True

    async def _call(self, request: Message) -> Any:
        return await self._peer.call(
            request, timeout_ms=self._broker.config.integer("replica.socket.timeout.ms")
        )

    async def _rest(self, error: Exception) -> None:
        """The leader cannot be reached: begin anew after a while."""
        if self._complaints.is_due(self._broker.clock.monotonic(), str(error)):
            trace = None if isinstance(error, KafkaError) else error
            log.warning("fetching from broker %d failed: %s", self.leader, error, exc_info=trace)
        self._session = LeaderSession()
        given_up, self._under_way = [task for _, _, task in self._under_way], deque()
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)
        self._resting = True
        try:
            await asyncio.sleep(self._broker.config.integer("replica.fetch.backoff.ms") / 1000)
        finally:
            self._resting = False

    # Asking.

    def _request(self) -> FetchRequest | None:
        """What to ask now; None when there is nothing to ask for."""
        self._number += 1
        session, config = self._session, self._broker.config
        candidates = list(self._following if session.is_new else self._changed)
        self._changed.clear()
        asked: list[tuple[PartitionKey, FetchPartition]] = []
        forgotten: list[PartitionKey] = []
        for key in candidates:
            following = self._following.get(key)
            if following is None or not self._is_ready(following):
                if session.members.pop(key, key) is None:
                    forgotten.append(key)
            elif (partition := self._asked(following)) is not None:
                session.members[key] = None
                asked.append((key, partition))
        if not session.members and not forgotten:
            return None
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self._broker.id, replica_epoch=self._broker.epoch()),
            # The first answer of a session comes at once: what is added meanwhile can be asked for then.
            max_wait_ms=0 if session.is_new else config.integer("replica.fetch.wait.max.ms"),
            min_bytes=config.integer("replica.fetch.min.bytes"),
            max_bytes=config.integer("replica.fetch.response.max.bytes"),
            session_id=session.id,
            session_epoch=session.epoch,
            topics=by_topic(asked),
            forgotten_topics_data=forgotten_by_topic(forgotten),
        )

    def _is_ready(self, following: Following) -> bool:
        if following.delayed:
            return False
        behind = following.lag is None or following.lag > 0
        throttle = self._throttle
        if behind and throttle.covers(*following.partition.topic_partition) and throttle.is_exceeded():
            self._delay(following, self._broker.config.integer("replica.fetch.backoff.ms") / 1000)
            return False
        return following.position() is not None

    def _asked(self, following: Following) -> FetchPartition | None:
        """None when the leader was told already."""
        position = following.position()
        if position is None or (position == following.asked and following.key in self._session.members):
            return None
        following.asked, following.asked_in = position, self._number
        return FetchPartition(
            partition=following.key[1],
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.offset,
            last_fetched_epoch=position.last_fetched_epoch,
            log_start_offset=position.log_start_offset,
            partition_max_bytes=self._broker.config.integer("replica.fetch.max.bytes"),
        )

    # Answers.

    async def _take(self, number: int, session: LeaderSession, response: FetchResponse) -> None:
        reason = session.answered(response)
        if reason is not None and session is self._session:
            if reason:
                log.info("the fetch session with broker %d is over: %s", self.leader, reason.name)
            self._session = LeaderSession()
        turn = LoopSlice(self._broker.clock)
        for topic in response.responses:
            for answer in topic.partitions:
                following = self._following.get((topic.topic_id, answer.partition_index))
                if following is None or following.asked_in > number:
                    continue
                await self._take_one(following, answer, turn)
                await turn.pause()

    async def _take_one(self, following: Following, answer: PartitionData, turn: LoopSlice) -> None:
        try:
            await self._catching_up.take(following, answer, self._is_current, turn)
            following.retries = 0
            self._record(following, answer.records)
            self._changed[following.key] = None
        except KafkaError as error:
            self._failed(following, error)
        except Exception:  # the others of this leader must not stop with it
            log.exception("%s is not followed any more", following.partition.topic_partition)
            if self._is_current(following):
                self.remove(following.key)

    def _is_current(self, following: Following) -> bool:
        return self._following.get(following.key) is following

    def _record(self, following: Following, records: Any) -> None:
        if records and self._throttle.covers(*following.partition.topic_partition):
            self._throttle.record(len(records))

    # Failures.

    def _failed(self, following: Following, error: KafkaError) -> None:
        if not self._is_current(following):
            return
        self._storage_failed(error)
        if isinstance(error, LogDirectoryFailed) or error.code is ErrorCode.FENCED_LEADER_EPOCH:
            log.warning("%s is not followed any more: %s", following.partition.topic_partition, error)
            self.remove(following.key)
            return
        backoff = Backoff.of_ms(_INITIAL_BACKOFF_MS, self._broker.config.integer("replica.fetch.backoff.ms"))
        following.retries += 1
        delay = backoff.seconds(following.retries)
        # A lasting error is logged after 1, 2, 4, … failures at the longest delay.
        is_news = delay == backoff.maximum_seconds and following.retries.bit_count() == 1
        level = logging.WARNING if is_news else logging.DEBUG
        log.log(level, "%s cannot be followed yet: %s", following.partition.topic_partition, error)
        self._delay(following, delay)

    def _delay(self, following: Following, seconds: float) -> None:
        following.delayed = True
        self._changed[following.key] = None
        asyncio.get_running_loop().call_later(seconds, self._retry, following)

    def _retry(self, following: Following) -> None:
        following.delayed = False
        if self._is_current(following):
            self._ask_again([following.key])
