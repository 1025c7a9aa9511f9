"""Reading for a member of a share group: wait until there is something to hand out, then hand it out.

Every partition is asked where to go on reading; what the log has there is read, and the member gets the
records it may have. Too little found: wait for appends, acknowledgements and locks that run out, at most
`max_wait_ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.share_fetch import AcquiredRecords, PartitionData
from moldau.protocol.records import iter_batches, iter_records
from moldau.protocol.stored.control import ControlType, decode_control_key
from moldau.server.share.live_partition import LivePartition
from moldau.server.share.sessions import Place
from moldau.share.aborted import FetchedBatch
from moldau.share.acquisition import Acquired, Fetched, Wish, acquire
from moldau.share.keys import ShareKey
from moldau.storage.log.log import Log, ReadResult

if TYPE_CHECKING:
    from moldau.server.node import Node


class FetchWish(NamedTuple):
    group_id: str
    member_id: str
    places: Sequence[Place]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool
    committed: bool


class _Found(NamedTuple):
    live: LivePartition
    offset: int
    log: Log
    read: ReadResult


class ShareFetch:
    def __init__(self, node: Node, wish: FetchWish) -> None:
        self._node = node
        self._wish = wish
        self._loop = asyncio.get_running_loop()
        self._live: dict[Place, LivePartition] = {}
        self._answers: dict[Place, PartitionData] = {}
        self._changed: asyncio.Future[None] | None = None
        self._is_changed = False
        #: Whether the loop has turned while the log was read.
        self._has_waited = False

    async def run(self) -> dict[Place, PartitionData]:
        wish = self._wish
        if not wish.places or wish.max_records == 0 or wish.max_bytes == 0:
            return {}
        deadline = self._loop.time() + wish.max_wait_ms / 1000
        self._open()
        try:
            while not await self._attempt(last=self._loop.time() >= deadline):
                await self._wait(deadline)
        finally:
            self._close()
        return self._answers

    def _open(self) -> None:
        for place in self._wish.places:
            try:
                live = self._node.share.get(ShareKey(self._wish.group_id, *place))
            except KafkaError as error:
                self._fail(place, error)
                continue
            self._live[place] = live
            live.add_waiter(self._on_change)
            live.replica.add_waiter(self._on_append)

    def _close(self) -> None:
        for live in self._live.values():
            live.remove_waiter(self._on_change)
            live.replica.remove_waiter(self._on_append)

    # Waiting.

    def _on_append(self, size: int) -> None:
        self._on_change()

    def _on_change(self) -> None:
        self._is_changed = True
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    async def _wait(self, deadline: float) -> None:
        if self._is_changed:
            return
        self._changed = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._on_change)
        try:
            await self._changed
        finally:
            timer.cancel()
            self._changed = None

    # Reading.

    async def _attempt(self, *, last: bool) -> bool:
        """Whether the answer is complete; the `last` attempt takes what there is."""
        self._is_changed = self._has_waited = False
        for place, live in list(self._live.items()):
            if live.failure is not None:
                self._fail(place, live.failure)
        if len(self._answers) == len(self._wish.places):
            return True
        offsets = self._offsets()
        if not offsets:
            return last
        try:
            found, size = await self._read(offsets)
            enough = last or size >= self._wish.min_bytes or any(place in self._answers for place in offsets)
            if enough:
                self._hand_out(found)
            return enough
        finally:
            for place in offsets:
                self._release(place)

    def _offsets(self) -> dict[Place, int]:
        """Where to read, for the partitions that have something to hand out; nobody else reads them now."""
        offsets = {}
        for place, live in self._live.items():
            share = live.active
            if share is not None and not live.busy and place not in self._answers and share.can_acquire():
                live.busy = True
                offsets[place] = share.next_fetch_offset()
        return offsets

    def _release(self, place: Place) -> None:
        live = self._live.get(place)
        if live is None:
            return
        live.busy = False
        if self._has_waited:
            # Others may have passed it over meanwhile; what is news to them is none to us.
            changed = self._is_changed
            live.wake()
            self._is_changed = changed

    async def _read(self, offsets: dict[Place, int]) -> tuple[dict[Place, _Found], int]:
        found: dict[Place, _Found] = {}
        size = 0
        share_of_bytes = max(1, self._wish.max_bytes // len(offsets))
        for place, offset in offsets.items():
            live = self._live[place]
            try:
                log = live.replica.leader_log()
                most = max(0, min(share_of_bytes, self._wish.max_bytes - size))
                read = self._read_log(log, offset, most, size == 0, blocking=False)
                if read is None:
                    self._has_waited = True
                    read = await self._node.pool.run(
                        self._read_log, log, offset, most, size == 0, blocking=True
                    )
                if read is not None:
                    found[place] = _Found(live, offset, log, read)
                    size += read.size
            except KafkaError as error:
                self._unreadable(place, live, error)
        return found, size

    def _read_log(
        self, log: Log, offset: int, max_bytes: int, min_one_batch: bool, *, blocking: bool
    ) -> ReadResult | None:
        bound = log.last_stable_offset if self._wish.committed else log.high_watermark
        return log.read(offset, max_bytes, upper_bound=bound, min_one_batch=min_one_batch, blocking=blocking)

    def _unreadable(self, place: Place, live: LivePartition, error: KafkaError) -> None:
        self._node.replicas.storage_failed(error)
        share, log = live.active, live.replica.log
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and share is not None and log is not None:
            # The log has been cut at its beginning: the group goes on where it begins now.
            share.log_start_moved(log.log_start_offset)
            self._answers[place] = PartitionData(partition_index=place.partition, records=b"")
            return
        self._node.share.drop(live)
        self._fail(place, error)

    def _fail(self, place: Place, error: KafkaError) -> None:
        live = self._live.pop(place, None)
        if live is not None:
            live.busy = False
            live.remove_waiter(self._on_change)
            live.replica.remove_waiter(self._on_append)
        self._answers[place] = PartitionData(
            partition_index=place.partition, error_code=error.code, records=b""
        )

    # Handing out.

    def _hand_out(self, found: dict[Place, _Found]) -> None:
        left = self._wish.max_records
        for place, each in found.items():
            share = each.live.active
            if share is None:
                continue
            data = each.read.parts[0] if each.read.parts else memoryview(b"")
            batches = _batches(data, self._wish.committed)
            wish = Wish(self._wish.member_id, left, self._wish.batch_size, self._wish.strict)
            acquired = acquire(share, wish, Fetched(each.offset, batches, self._aborted(each)))
            each.live.watch_locks()
            left -= sum(span.last - span.first + 1 for span in acquired)
            self._answers[place] = _answer(place, data, batches, acquired)

    def _aborted(self, found: _Found) -> list[tuple[int, int]]:
        if not self._wish.committed or not found.read.size:
            return []
        aborted = found.log.aborted_transactions(found.offset, found.read.next_offset)
        return [(each.producer_id, each.first_offset) for each in aborted]


def _batches(data: memoryview, committed: bool) -> list[FetchedBatch]:
    found = []
    for position, header in iter_batches(data):
        aborts = False
        if committed and header.is_control:
            batch = data[position : position + header.size_in_bytes]
            first = next(iter_records(batch, header), None)
            aborts = first is not None and decode_control_key(first.key) == ControlType.ABORT
        found.append(
            FetchedBatch(
                header.base_offset,
                header.last_offset,
                header.size_in_bytes,
                header.producer_id,
                header.is_transactional,
                aborts,
            )
        )
    return found


def _answer(
    place: Place, data: memoryview, batches: Sequence[FetchedBatch], acquired: Sequence[Acquired]
) -> PartitionData:
    answer = PartitionData(partition_index=place.partition, records=b"")
    if acquired:
        first, last = acquired[0].first, acquired[-1].last
        start = sum(batch.size for batch in batches if batch.last < first)
        size = sum(batch.size for batch in batches if batch.last >= first and batch.base <= last)
        answer.records = [data[start : start + size]]
        answer.acquired_records = [
            AcquiredRecords(
                first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count
            )
            for each in acquired
        ]
    return answer
