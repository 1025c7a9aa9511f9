"""The running registry: decisions on one event loop, records in the log, replies once they are stored.

A decision is applied to the state at once, so that the next decision sees it; its reply is held until the
log has acknowledged its records. A reply to a read waits, too, until everything it may have seen is
acknowledged: an id that a client has received is never given to another schema.

When the log replays a record of this instance, it is recognised as the oldest one that is pending. If a
write fails, or another record arrives in between, the state contains decisions that are not in the topic, or
that the other record may have made invalid: it is discarded and loaded again, the waiting writes fail as
unconfirmed, and the reads are answered from the new state. Until it is loaded, requests wait for a limited
time and are then refused.

An instance that does not lead catches up with the topic before it answers a read (`catch_up`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from moldau.base.clock import Clock
from moldau.base.daemon_threads import DaemonThreads
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.http.errors import ApiError
from moldau.registry.catch_up import CatchUp
from moldau.registry.state import errors
from moldau.registry.state.registry import Decision, Registry, RegistrySettings

logger = logging.getLogger(__name__)

Decide = Callable[[Registry], Decision]
Record = tuple[bytes, bytes | None]

STORE_FAILED: Final = 50001
TIMED_OUT: Final = 50002
_UNCONFIRMED: Final = "The write is not confirmed: {}. It may have taken effect; read before you retry."
_FOREIGN: Final = "another instance wrote to the topic at the same time"
_NOT_LOADED: Final = "The schemas are being loaded from Kafka; retry later."
_NOOP_KEY: Final = b'{"keytype":"NOOP"'
#: Statuses that the records not yet read may change.
_OUTDATED: Final = (403, 404)
_RETRY_S: Final = 0.2
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Log(Protocol):
    """The topic. `SchemaLog` is the one of Kafka."""

    #: The largest size of the key and value of a record.
    max_bytes: int

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
        timeout_s: float = 5.0,
    ) -> None:
        self.registry = Registry(settings)
        self._settings = settings
        self._log = log
        self._leadership = leadership
        self._clock = clock
        #: For the election of a leader, and for the state to be loaded again.
        self._timeout_s = timeout_s
        #: Records that are applied and not yet replayed by the log.
        self._pending: deque[Record] = deque()
        #: The last append; later ones are acknowledged later.
        self._last: asyncio.Future[int] | None = None
        self._recovery: asyncio.Task[None] | None = None
        #: How often the state was discarded: a decision that saw an earlier one is not valid.
        self._recoveries = 0
        self._precomputing = DaemonThreads(1, "moldau-registry")
        self.catch_up = CatchUp(log.read_to_end)

    @property
    def generation(self) -> int | None:
        """A number that changes with the state; None while something is not acknowledged."""
        return None if self._pending or self._recovery is not None else self.registry.store.generation

    @property
    def leads(self) -> bool:
        return self._leadership.leads

    async def start(self) -> None:
        """Load the topic and follow it."""
        await self._log.start(self._replay)

    async def close(self) -> None:
        await self.catch_up.close()
        self._precomputing.shutdown()
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)

    async def precompute(self, decide: Decide) -> None:
        """Decide in a thread and discard the decision, so that the real one finds the expensive results.

        The state may change meanwhile, so nothing follows from it, except that a schema is invalid: what it
        refers to is known, because an instance that does not lead catches up first.
        """
        if not self._leadership.leads:
            await self.catch_up()
        await self._recovered()
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._precomputing, decide, self.registry)
        except ApiError as error:
            if error.error_code == errors.INVALID_SCHEMA:
                raise
        except (RuntimeError, LookupError) as error:
            logger.debug("The state changed during a precomputation: %r", error)

    async def read(self, decide: Decide, *, immutable: bool = False) -> Decision:
        """Answer from the state, once it is acknowledged.

        `immutable`: what is found never changes, so an instance that does not lead need not catch up first.
        """
        if self._leadership.leads:
            return await self._read(decide)
        if immutable:
            try:
                return await self._read(decide)
            except ApiError as error:
                if error.status not in _OUTDATED:
                    raise
        await self.catch_up()
        return await self._read(decide)

    async def _read(self, decide: Decide) -> Decision:
        while True:
            await self._recovered()
            recoveries = self._recoveries
            try:
                decision = decide(self.registry)
            except ApiError:
                if await self._acknowledged(recoveries):
                    raise
                continue
            if await self._acknowledged(recoveries):
                return decision

    async def _acknowledged(self, recoveries: int) -> bool:
        """Wait until all that a decision has seen is in the topic; return False if it is not."""
        last = self._last
        if last is not None and not last.done():
            await asyncio.wait([last])
        if not _has_failed(last):
            return recoveries == self._recoveries
        self._discard()
        return False

    async def write(self, decide: Decide) -> Decision:
        """Decide, append and answer. Only the leader decides; `NotLeader` otherwise."""
        await self.require_leader()
        recoveries = self._recoveries
        decision = decide(self.registry)
        if not decision.records:
            return await self._held(decision, recoveries)
        if any(len(key) + len(value or b"") > self._log.max_bytes for key, value in decision.records):
            raise errors.schema_too_large()
        appended = self._append(decision.records)
        try:
            await asyncio.shield(appended)
        except KafkaError as error:
            self._discard()
            raise _unconfirmed(error) from error
        self._require_state(recoveries)
        return decision

    def _require_state(self, recoveries: int) -> None:
        """Refuse to acknowledge a decision if the state that it saw has been discarded since."""
        if self._recoveries != recoveries:
            raise ApiError(500, STORE_FAILED, _UNCONFIRMED.format(_FOREIGN))

    async def require_leader(self) -> None:
        """Return once this instance leads and its state is loaded, without a turn of the loop in between."""
        while True:
            if not self._leadership.leads:
                await self._leadership.require(self._timeout_s)
            if _has_failed(self._last):
                self._discard()
            elif self._recovery is None:
                return
            await self._recovered()

    async def _held(self, decision: Decision, recoveries: int) -> Decision:
        """Hold a reply that depends on writes in flight until they are acknowledged."""
        last = self._last
        if last is None:
            return decision
        await asyncio.wait([last])
        error = last.exception()
        if error is not None:
            raise _unconfirmed(error)
        self._require_state(recoveries)
        return decision

    def _append(self, records: Sequence[Record]) -> asyncio.Future[int]:
        """Apply records and pass them to the log, without a turn of the event loop in between."""
        now, store = self._clock.time_ms(), self.registry.store
        for key, value in records:
            self._pending.append((key, value))
            try:
                store.replay(key, value, now)
            except Exception:
                self._discard()
                raise
        last = self._last = asyncio.ensure_future(self._log.append(records))
        return last

    def _replay(self, key: bytes, value: bytes | None, offset: int, timestamp: int) -> None:
        if self._pending:
            if self._pending[0] == (key, value):
                self._pending.popleft()
                self.registry.store.confirm(key, timestamp)
                return
            if key.startswith(_NOOP_KEY):
                # Every instance of Confluent's writes one when it starts.
                return
            logger.warning(
                "Another instance wrote the record at offset %d; the state is loaded again.",
                offset,
                extra=event("registry.reloaded", offset=offset),
            )
            self._discard()
            return
        self.registry.store.replay(key, value, timestamp)

    def _discard(self) -> None:
        """Load the state again, because it may contain decisions that are not in the topic."""
        self._leadership.fenced()
        self._last = None
        if self._pending and self._recovery is None:
            self._recoveries += 1
            self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        """Load the topic, until Kafka allows it; no request sees the state meanwhile."""
        while True:
            self._leadership.fenced()
            self._pending.clear()
            registry = Registry(self._settings)
            # Responses that are cached for the old state must not be valid for this one.
            registry.store.generation = self.registry.store.generation + 1
            self.registry = registry
            try:
                await self._log.reload()
                break
            except KafkaError as error:
                logger.warning("The schemas cannot be loaded: %s", error, extra=event("registry.not_loaded"))
                await asyncio.sleep(_RETRY_S)
        self._recovery = None

    async def _recovered(self) -> None:
        if self._recovery is None:
            return
        done, _ = await asyncio.wait([self._recovery], timeout=self._timeout_s)
        if not done:
            raise ApiError(500, TIMED_OUT, _NOT_LOADED)


def _has_failed(append: asyncio.Future[int] | None) -> bool:
    """Return whether an append has ended without being acknowledged."""
    if append is None or not append.done():
        return False
    return append.cancelled() or append.exception() is not None


def _unconfirmed(error: BaseException) -> ApiError:
    if isinstance(error, KafkaError) and error.code in _TOO_LARGE:
        return errors.schema_too_large()
    timed_out = isinstance(error, KafkaError) and error.code == ErrorCode.REQUEST_TIMED_OUT
    return ApiError(500, TIMED_OUT if timed_out else STORE_FAILED, _UNCONFIRMED.format(error))
