"""A share partition at its leader: loaded from the share coordinator, changed by members, persisted there.

Acknowledgements change the state immediately and are persisted in the background, even if the member
disconnects. One timer watches the acquisition locks. Every change wakes the fetches that wait for records.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.replication.partition import Partition
from moldau.server.share.persister import Persister
from moldau.server.share.settings import ShareGroupConfigs, duration_ms
from moldau.share.acknowledgement import Acknowledgement, acknowledge, release
from moldau.share.keys import SharePartitionKey
from moldau.share.partition_state import SharePartitionState, StateTransition
from moldau.share.shard import StateWrite
from moldau.share.state_batches import UNKNOWN_START_OFFSET, StateBatch

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: Errors of the share coordinator as members receive them.
_MEMBER_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_BY_DURATION = "by_duration:"

Waiter = Callable[[], None]


class SharePartition:
    def __init__(
        self,
        configs: ShareGroupConfigs,
        persister: Persister,
        clock: Clock,
        pool: Pool,
        key: SharePartitionKey,
        replica: Partition,
        on_refused: Callable[[SharePartition, KafkaError], None],
    ) -> None:
        """`on_refused` receives every error of the share coordinator."""
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.failure: KafkaError | None = None
        #: Whether a fetch is reading the log for this partition.
        self.busy = False
        self._configs = configs
        self._persister = persister
        self._clock = clock
        self._pool = pool
        self._on_refused = on_refused
        self._loop = asyncio.get_running_loop()
        self._state = SharePartitionState(lambda: configs.limits(key.group_id), self._now_ms)
        self._loaded = False
        self._fenced = False
        self._waiters: dict[Waiter, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._loading = self._run(self._load())

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    @property
    def active(self) -> SharePartitionState | None:
        """The state, if records may be acquired: it is loaded and not fenced."""
        return self._state if self._loaded and not self._fenced else None

    # Loading.

    async def _load(self) -> None:
        try:
            persisted = await _persisted(self._persister.read(self.key, self.leader_epoch))
            start = persisted.start_offset
            if start == UNKNOWN_START_OFFSET:
                start = await self._reset()
            self._state.load(start, persisted.state_epoch, persisted.batches)
            self._loaded = True
        except KafkaError as error:
            self.failure = error
            logger.info("%s could not be loaded: %s", self.key.name, error)
            self._on_refused(self, error)
        self.wake()

    async def _reset(self) -> int:
        """Return the start offset by `share.auto.offset.reset`."""
        strategy, log_ = self._configs.offset_reset(self.key.group_id), self.replica.leader_log()
        if strategy == "earliest":
            return log_.log_start_offset
        if not strategy.startswith(_BY_DURATION):
            return log_.high_watermark
        since = self._clock.time_ms() - duration_ms(strategy.removeprefix(_BY_DURATION))
        found = await self._pool.run(log_.reader.offset_for_timestamp, since)
        if found is None or found.offset >= log_.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "No record has this timestamp or a later one.")
        return found.offset

    # Acknowledgements.

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> asyncio.Future[None]:
        """Apply acknowledgements; the result is done when they are persisted."""
        self._check_active()
        return self._persist(acknowledge(self._state, member_id, acknowledgements))

    def release(self, member_id: str) -> asyncio.Future[None]:
        """Make all records that a member has acquired available again."""
        self._check_active()
        return self._persist(release(self._state, member_id))

    def _check_active(self) -> None:
        if self.active is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No records of this share partition are in flight."
            )

    def _persist(self, transition: StateTransition) -> asyncio.Future[None]:
        self.watch_locks()
        self.wake()
        if not transition.changes:
            done: asyncio.Future[None] = self._loop.create_future()
            done.set_result(None)
            return done
        return self._run(self._write(transition))

    async def _write(self, transition: StateTransition) -> None:
        try:
            await _persisted(self._persister.write(self.key, self._state_write(transition.batches)))
        except KafkaError as error:
            self._state.complete(transition, persisted=False)
            logger.info("acknowledgements of %s are rolled back: %s", self.key.name, error)
            self._on_refused(self, error)
            raise
        else:
            self._state.complete(transition, persisted=True)
        finally:
            self.watch_locks()
            self.wake()

    def _state_write(self, batches: Sequence[StateBatch]) -> StateWrite:
        state = self._state
        return StateWrite(
            state.state_epoch, self.leader_epoch, state.start_offset, state.complete_count, batches
        )

    # Acquisition locks.

    def watch_locks(self) -> None:
        """Schedule a timer for the next acquisition lock that expires."""
        deadline_ms = None if self._fenced else self._state.locks.next_deadline()
        if deadline_ms is None:
            self._cancel_timer()
            return
        deadline = deadline_ms / 1000
        if self._timer is not None and self._timer.when() <= deadline:
            return
        self._cancel_timer()
        # One millisecond later: the clock of the loop is finer than milliseconds.
        self._timer = self._loop.call_at(deadline + 0.001, self._expire_locks)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire_locks(self) -> None:
        self._timer = None
        batches = self._state.expire()
        if batches:
            self._run(self._write_expired(batches))
            self.wake()
        self.watch_locks()

    async def _write_expired(self, batches: Sequence[StateBatch]) -> None:
        try:
            await _persisted(self._persister.write(self.key, self._state_write(batches)))
        except KafkaError as error:
            logger.info("expired acquisition locks of %s could not be persisted: %s", self.key.name, error)
            self._on_refused(self, error)
        self._state.advance()
        self.wake()

    # Waiters and shutdown.

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def wake(self) -> None:
        for waiter in list(self._waiters):
            waiter()

    def fence(self) -> None:
        """Stop serving records; pending writes continue."""
        self._fenced = True
        self._cancel_timer()
        self.wake()

    async def close(self) -> None:
        self.fence()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in a task that survives the request that started it."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, KafkaError):
            logger.error("a background task of %s failed", self.key.name, exc_info=error)


async def _persisted(response: Awaitable[R]) -> R:
    """Await the persister and translate its errors for members."""
    try:
        return await response
    except KafkaError as error:
        code = _MEMBER_ERRORS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)
        raise KafkaError(code, error.message) from error
