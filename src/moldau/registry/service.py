"""The running registry: decisions on one event loop, records in the log, replies once they are stored.

A decision is applied to the state at once, so that the next decision sees it; its reply is held until the
log has acknowledged its records. A reply to a read waits, too, until everything it may have seen is
acknowledged: an id that a client has received is never given to another schema.

When the log replays a record of this instance, it is recognised as the oldest one that is pending. If a
write fails, or another record arrives in between, the state contains decisions that are not in the topic: it
is discarded and loaded again, and the waiting requests fail as unconfirmed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.http.errors import ApiError
from moldau.registry.state import errors
from moldau.registry.state.registry import Decision, Registry, RegistrySettings

logger = logging.getLogger(__name__)

Decide = Callable[[Registry], Decision]
Record = tuple[bytes, bytes | None]

STORE_FAILED: Final = 50001
TIMED_OUT: Final = 50002
_UNCONFIRMED: Final = "The write is not confirmed: {}. It may have taken effect; read before you retry."
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Log(Protocol):
    """The topic. `SchemaLog` is the one of Kafka."""

    async def start(self, replay: Callable[[bytes, bytes | None, int, int], None]) -> None: ...

    async def append(self, records: Sequence[Record]) -> int: ...

    async def read_to_end(self) -> None: ...

    async def reload(self) -> None: ...


class Leadership(Protocol):
    """The election. `require` returns once this instance leads, or raises `NotLeader`."""

    @property
    def leads(self) -> bool: ...

    async def require(self, timeout_s: float) -> None: ...

    def fenced(self) -> None: ...


class RegistryService:
    def __init__(
        self,
        settings: RegistrySettings,
        log: Log,
        leadership: Leadership,
        clock: Clock,
        *,
        leader_timeout_s: float = 5.0,
    ) -> None:
        self.registry = Registry(settings)
        self._settings = settings
        self._log = log
        self._leadership = leadership
        self._clock = clock
        self._leader_timeout_s = leader_timeout_s
        #: Records that are applied and not yet replayed by the log.
        self._pending: deque[Record] = deque()
        #: The last append; later ones are acknowledged later.
        self._last: asyncio.Future[int] | None = None
        self._recovery: asyncio.Task[None] | None = None

    @property
    def generation(self) -> int | None:
        """A number that changes with the state; None while something is not acknowledged."""
        return None if self._pending or self._recovery is not None else self.registry.store.generation

    async def start(self) -> None:
        """Load the topic and follow it."""
        await self._log.start(self._replay)

    async def close(self) -> None:
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)

    async def read(self, decide: Decide) -> Decision:
        """Answer from the state, once it is acknowledged."""
        while True:
            await self._recovered()
            decision = decide(self.registry)
            last = self._last
            if last is None or last.done():
                return decision
            await asyncio.wait([last])
            if not last.cancelled() and last.exception() is None:
                return decision
            # What was seen is not in the topic.
            await self._discard()

    async def write(self, decide: Decide) -> Decision:
        """Decide, append and answer. Only the leader decides; `NotLeader` otherwise."""
        if not self._leadership.leads:
            await self._leadership.require(self._leader_timeout_s)
        await self._recovered()
        if not self._leadership.leads:
            await self._leadership.require(self._leader_timeout_s)
        decision = decide(self.registry)
        if not decision.records:
            return await self._held(decision)
        appended = self._append(decision.records)
        try:
            await asyncio.shield(appended)
        except KafkaError as error:
            await self._discard()
            raise _unconfirmed(error) from error
        return decision

    async def _held(self, decision: Decision) -> Decision:
        """Hold a reply that depends on writes in flight until they are acknowledged."""
        last = self._last
        if last is not None and not last.done():
            await asyncio.wait([last])
            error = last.exception()
            if error is not None:
                raise _unconfirmed(error)
        return decision

    def _append(self, records: Sequence[Record]) -> asyncio.Future[int]:
        """Apply records and pass them to the log, without a turn of the event loop in between."""
        now, store = self._clock.time_ms(), self.registry.store
        for key, value in records:
            store.replay(key, value, now)
            self._pending.append((key, value))
        last = self._last = asyncio.ensure_future(self._log.append(records))
        return last

    def _replay(self, key: bytes, value: bytes | None, offset: int, timestamp: int) -> None:
        if self._pending:
            if self._pending[0] == (key, value):
                self._pending.popleft()
                self.registry.store.confirm(key, timestamp)
                return
            logger.warning(
                "Another instance wrote the record at offset %d; the state is loaded again.", offset
            )
            self._start_recovery()
            return
        self.registry.store.replay(key, value, timestamp)

    async def _discard(self) -> None:
        """Load the state again after a failed write."""
        self._leadership.fenced()
        if self._pending:
            self._start_recovery()
        await self._recovered()

    def _start_recovery(self) -> None:
        if self._recovery is None:
            self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        try:
            self._leadership.fenced()
            self._pending.clear()
            self.registry = Registry(self._settings)
            await self._log.reload()
        finally:
            self._recovery = None

    async def _recovered(self) -> None:
        while self._recovery is not None:
            try:
                await asyncio.shield(self._recovery)
            except KafkaError as error:
                raise ApiError(500, STORE_FAILED, f"The schemas cannot be loaded: {error}") from error


def _unconfirmed(error: BaseException) -> ApiError:
    if isinstance(error, KafkaError) and error.code in _TOO_LARGE:
        return errors.schema_too_large()
    timed_out = isinstance(error, KafkaError) and error.code == ErrorCode.REQUEST_TIMED_OUT
    return ApiError(500, TIMED_OUT if timed_out else STORE_FAILED, _UNCONFIRMED.format(error))
