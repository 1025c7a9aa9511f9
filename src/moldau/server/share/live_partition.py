"""A share partition that this node hands records out of: loaded from the share coordinator, kept there.

What members say changes the state at once and is stored in the background, whether or not whoever said it is
still there to hear the answer. Locks are watched by one timer. Whoever waits for records is woken
by every change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.replication.partition import Partition
from moldau.server.share.settings import duration_ms, limits, offset_reset
from moldau.share.acknowledgement import Acknowledgement, acknowledge, release
from moldau.share.deliveries import StateBatch
from moldau.share.keys import ShareKey
from moldau.share.merging import UNKNOWN_START
from moldau.share.partition import SharePartition, Transition
from moldau.share.shard import StateWrite

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

R = TypeVar("R")

#: What members are told when the share coordinator refuses.
_TOLD = {
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


class LivePartition:
    def __init__(
        self,
        node: Node,
        key: ShareKey,
        replica: Partition,
        on_refused: Callable[[LivePartition, KafkaError], None],
    ) -> None:
        """`on_refused` hears of every refusal of the share coordinator."""
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.failure: KafkaError | None = None
        #: Whether somebody is reading the log for it right now.
        self.busy = False
        self._node = node
        self._persister = node.coordinators.persister
        self._on_refused = on_refused
        self._loop = asyncio.get_running_loop()
        self._share = SharePartition(lambda: limits(node, key.group_id), self._now_ms)
        self._loaded = False
        self._fenced = False
        self._waiters: dict[Waiter, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._loading = self._keep(self._load())

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    @property
    def active(self) -> SharePartition | None:
        """The state, while records may be handed out."""
        return self._share if self._loaded and not self._fenced else None

    # Loading.

    async def _load(self) -> None:
        try:
            state = await _asked(self._persister.read(self.key, self.leader_epoch))
            start = state.start_offset
            if start == UNKNOWN_START:
                start = await self._reset()
            self._share.load(start, state.state_epoch, state.batches)
            self._loaded = True
        except KafkaError as error:
            self.failure = error
            log.info("%s cannot be loaded: %s", self.key.name, error)
            self._on_refused(self, error)
        self.wake()

    async def _reset(self) -> int:
        """Where a group begins that has never read this partition."""
        rule, log_ = offset_reset(self._node, self.key.group_id), self.replica.leader_log()
        if rule == "earliest":
            return log_.log_start_offset
        if not rule.startswith(_BY_DURATION):
            return log_.high_watermark
        since = self._node.clock.time_ms() - duration_ms(rule.removeprefix(_BY_DURATION))
        found = await self._node.pool.run(log_.offset_for_timestamp, since)
        if found is None or found.offset >= log_.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "there is no record of that time or later yet")
        return found.offset

    # What members say.

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> asyncio.Future[None]:
        """In force at once; done when it is stored."""
        self._check_active()
        return self._store(acknowledge(self._share, member_id, acknowledgements))

    def release(self, member_id: str) -> asyncio.Future[None]:
        """Everything a member holds is free again."""
        self._check_active()
        return self._store(release(self._share, member_id))

    def _check_active(self) -> None:
        if self.active is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nothing has been handed out from there")

    def _store(self, transition: Transition) -> asyncio.Future[None]:
        self.watch_locks()
        self.wake()
        if not transition.changes:
            done: asyncio.Future[None] = self._loop.create_future()
            done.set_result(None)
            return done
        return self._keep(self._write(transition))

    async def _write(self, transition: Transition) -> None:
        try:
            await _asked(self._persister.write(self.key, self._state_write(transition.batches)))
        except KafkaError as error:
            self._share.complete(transition, stored=False)
            log.info("acknowledgements for %s are taken back: %s", self.key.name, error)
            self._on_refused(self, error)
            raise
        else:
            self._share.complete(transition, stored=True)
        finally:
            self.watch_locks()
            self.wake()

    def _state_write(self, batches: Sequence[StateBatch]) -> StateWrite:
        share = self._share
        return StateWrite(
            share.state_epoch, self.leader_epoch, share.start_offset, share.complete_count, batches
        )

    # Locks.

    def watch_locks(self) -> None:
        """See to it that the next lock to run out is noticed."""
        deadline_ms = None if self._fenced else self._share.locks.next_deadline()
        if deadline_ms is None:
            self._cancel_timer()
            return
        deadline = deadline_ms / 1000
        if self._timer is not None and self._timer.when() <= deadline:
            return
        self._cancel_timer()
        # A little later: the loop's clock is finer than milliseconds.
        self._timer = self._loop.call_at(deadline + 0.001, self._locks_due)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _locks_due(self) -> None:
        self._timer = None
        batches = self._share.expire()
        if batches:
            self._keep(self._write_expired(batches))
            self.wake()
        self.watch_locks()

    async def _write_expired(self, batches: Sequence[StateBatch]) -> None:
        try:
            await _asked(self._persister.write(self.key, self._state_write(batches)))
        except KafkaError as error:
            log.info("locks of %s that ran out are not stored: %s", self.key.name, error)
            self._on_refused(self, error)
        self._share.advance()
        self.wake()

    # Waiting and ending.

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def wake(self) -> None:
        for waiter in list(self._waiters):
            waiter()

    def fence(self) -> None:
        """Nothing is handed out any more; what is being stored goes on."""
        self._fenced = True
        self._cancel_timer()
        self.wake()

    async def close(self) -> None:
        self.fence()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of its own, which goes on when whoever waits for it is gone."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, KafkaError):
            log.error("work on %s failed", self.key.name, exc_info=error)


async def _asked(answer: Awaitable[R]) -> R:
    """What the share coordinator says; a refusal as members are told of it."""
    try:
        return await answer
    except KafkaError as error:
        code = _TOLD.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)
        raise KafkaError(code, error.message) from error
