"""A partition of an internal topic as the log of a state machine, and its replay when a shard is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.protocol.stored.coordinator import CoordinatorTable
from moldau.replication.partition import Partition
from moldau.statemachine.coordinator_records import EndTransaction, Entry, decode_entries, encode_entries
from moldau.storage.log.append import Origin
from moldau.storage.log.log import Log

_READ_BYTES = 1024 * 1024
#: Replaying this many entries takes about a millisecond; then the loop runs other tasks.
_REPLAY_SLICE = 200

#: Errors of the log as coordinators report them.
_COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class PartitionLog:
    def __init__(
        self,
        partition: Partition,
        clock: Clock,
        codec: Callable[[], int],
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        """`on_failure` receives the original error of every refused append."""
        self._partition = partition
        self._clock = clock
        self._codec = codec
        self._on_failure = on_failure

    @property
    def end_offset(self) -> int:
        try:
            return self._partition.usable_log().log_end_offset
        except KafkaError as error:
            raise _coordinator_error(error) from error

    def append(self, entries: Sequence[Entry]) -> int:
        batch = encode_entries(entries, self._clock.time_ms(), self._codec())
        first = entries[0]
        version = first.transaction_version if isinstance(first, EndTransaction) else 0
        try:
            self._partition.check_in_sync()
            info = self._partition.append(batch, origin=Origin.COORDINATOR, transaction_version=version)
            return info.last_offset
        except KafkaError as error:
            self._on_failure(error)
            raise _coordinator_error(error) from error


def _coordinator_error(error: KafkaError) -> KafkaError:
    return KafkaError(_COORDINATOR_ERRORS.get(error.code, error.code), error.message)


async def replay_partition(
    log: Log, table: CoordinatorTable, pool: Pool, replay: Callable[[Sequence[Entry], int], None]
) -> None:
    """Replay the whole log in order, in slices that do not block the loop."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        entries, next_offset = await pool.run(_read, log, table, offset)
        for start in range(0, len(entries), _REPLAY_SLICE):
            for entry_offset, entry in entries[start : start + _REPLAY_SLICE]:
                replay((entry,), entry_offset)
            await asyncio.sleep(0)
        if next_offset <= offset:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{log.topic_partition} cannot be read at offset {offset}."
            )
        offset = next_offset


def _read(log: Log, table: CoordinatorTable, offset: int) -> tuple[list[tuple[int, Entry]], int]:
    found = log.reader.read(offset, _READ_BYTES, upper_bound=log.log_end_offset, blocking=True)
    if found is None:
        return [], offset
    entries: list[tuple[int, Entry]] = []
    for part in found.parts:
        entries.extend(entry for entry in decode_entries(table, part) if entry[0] >= offset)
    return entries, found.next_offset
