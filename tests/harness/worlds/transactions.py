"""A transaction coordinator and the partitions it writes markers to, without a node.

The shard runs on the real runtime, and its log stores bytes; partitions are real logs in a directory. Markers
are written immediately unless they are held back, and the test controls the time. Stored state survives a
crash.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.protocol.records import Record, build_batch, iter_batches, iter_records
from moldau.protocol.stored.coordinator import TRANSACTION_STATE
from moldau.statemachine.coordinator_records import (
    EndTransaction,
    Entry,
    Producer,
    decode_entries,
    encode_entries,
)
from moldau.statemachine.decision import Decision
from moldau.statemachine.effects import WriteTxnMarkers
from moldau.statemachine.runtime import Runtime
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.append import Origin
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.producers.verification import Guard
from moldau.transactions.context import TransactionContext, TransactionSettings
from moldau.transactions.shard import TransactionShard
from tests.harness.worlds.coordination import EntryLog, ManualTimers

MAX_TIMEOUT_MS = 900_000
EXPIRATION_MS = 604_800_000


class TransactionWorld:
    def __init__(self, folder: Path, level: int = 2) -> None:
        self.clock = ManualClock()
        self.level = level
        self.stored = EntryLog()
        self.logs: dict[TopicPartition, Log] = {}
        self.holds = False
        self.held: list[WriteTxnMarkers] = []
        #: All markers ever requested, for late repetitions.
        self.requested: list[WriteTxnMarkers] = []
        self._folder = folder
        self._last_producer_id = 0
        self._leader_epoch = -1
        self.take_over()

    # The coordinator.

    def take_over(self) -> None:
        """Load a new coordinator from the log."""
        self._leader_epoch += 1
        self.held.clear()
        context = TransactionContext(
            self.clock,
            lambda: TransactionSettings(MAX_TIMEOUT_MS, EXPIRATION_MS, False),
            lambda: self.level,
            self._new_producer_id,
        )
        self.timers = ManualTimers(self.clock, lambda decide: self.runtime.take(decide))
        self.shard = TransactionShard(context, self._leader_epoch, self.timers)
        for base_offset, data in self.stored.batches:
            self.shard.replay(
                [entry for _, entry in decode_entries(TRANSACTION_STATE, memoryview(data))], base_offset
            )
        self.runtime: Runtime[Entry] = Runtime(self.stored, self.shard.replay, self._markers_requested)
        self.shard.activate(MetadataImage.empty())
        self.timers.advance(0)

    def decide(self, decide: Callable[[TransactionShard], Decision[Entry, Any]]) -> Any:
        """Return the response; raise KafkaError if refused."""
        decision = self.runtime.take(lambda: decide(self.shard))
        self.runtime.committed(self.stored.end_offset - 1)
        return decision.response

    def pass_time(self, milliseconds: int) -> None:
        self.timers.advance(milliseconds)
        for transactional_id in self.shard.timed_out():
            self.decide(lambda shard, name=transactional_id: shard.abort_timed_out(name))  # type: ignore[misc]

    def _new_producer_id(self) -> int:
        self._last_producer_id += 1
        return self._last_producer_id

    # Markers.

    def _markers_requested(self, markers: WriteTxnMarkers) -> None:
        self.held.append(markers)
        self.requested.append(markers)
        if not self.holds:
            self.deliver()

    def deliver(self) -> None:
        """Write the held markers and complete their transactions."""
        while self.held:
            markers = self.held.pop(0)
            self.write_markers(markers, sorted(markers.partitions))
            self.decide(lambda shard, done=markers: shard.complete(done))  # type: ignore[misc]

    def write_markers(self, markers: WriteTxnMarkers, partitions: list[TopicPartition]) -> None:
        end = EndTransaction(
            markers.producer, markers.committed, markers.coordinator_epoch, markers.transaction_version
        )
        for each in partitions:
            self.append(
                each,
                encode_entries((end,), self.clock.time_ms()),
                origin=Origin.COORDINATOR,
                transaction_version=markers.transaction_version,
            )

    # Partitions.

    def log(self, topic_partition: TopicPartition) -> Log:
        found = self.logs.get(topic_partition)
        if found is None:
            path = str(self._folder / str(topic_partition))
            found = Log.open(PosixDisk(), self.clock, path, topic_partition, None, LogConfig())
            self.logs[topic_partition] = found
        return found

    def append(self, topic_partition: TopicPartition, data: bytearray, **options: Any) -> None:
        log = self.log(topic_partition)
        log.append_as_leader(data, 0, **options)
        log.high_watermark = log.log_end_offset

    def restart_partitions(self) -> None:
        """Reopen the logs from disk, as after `kill -9`."""
        partitions, self.logs = list(self.logs), {}
        for each in partitions:
            log = self.log(each)
            log.high_watermark = log.log_end_offset

    def send(
        self,
        transactional_id: str,
        producer: Producer,
        topic_partition: TopicPartition,
        sequence: int,
        value: bytes,
        *,
        implicit: bool,
    ) -> None:
        """Write a batch of one record as the partition leader does."""
        guard = self.verify(transactional_id, producer, topic_partition, sequence, implicit=implicit)
        self.write(producer, topic_partition, sequence, value, guard)

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        topic_partition: TopicPartition,
        sequence: int,
        *,
        implicit: bool,
    ) -> Guard | None:
        """Verify the partition before a first batch, as its leader does; the result may become outdated."""
        guard = self.log(topic_partition).producer_state.begin_verification(
            producer.id, producer.epoch, sequence, epoch_per_transaction=implicit, now_ms=self.clock.time_ms()
        )
        if guard is not None:
            self._verify(transactional_id, producer, topic_partition, implicit=implicit)
        return guard

    def write(
        self,
        producer: Producer,
        topic_partition: TopicPartition,
        sequence: int,
        value: bytes,
        guard: Guard | None,
    ) -> None:
        data = build_batch(
            [Record(0, self.clock.time_ms(), None, value)],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        self.append(topic_partition, data, guard=guard)

    def _verify(
        self, transactional_id: str, producer: Producer, each: TopicPartition, *, implicit: bool
    ) -> None:
        if implicit:
            self.decide(lambda shard: shard.add_partitions(transactional_id, producer, frozenset({each}), 2))
            return
        code = self.shard.verify_partitions(transactional_id, producer, [each])[each]
        if code is not ErrorCode.NONE:
            raise KafkaError(code)

    def committed(self, topic_partition: TopicPartition) -> list[bytes]:
        """Return the values that a `read_committed` consumer gets."""
        log = self.log(topic_partition)
        bound = log.last_stable_offset
        aborted = {
            (each.producer_id, offset)
            for each in log.reader.aborted_transactions(0, bound)
            for offset in range(each.first_offset, each.last_offset)
        }
        values = []
        for header, record in self._records(log, bound):
            if not header.is_control and (header.producer_id, record.offset) not in aborted:
                values.append(bytes(record.value or b""))
        return values

    @staticmethod
    def _records(log: Log, bound: int) -> list[Any]:
        found, offset = [], log.log_start_offset
        while offset < bound:
            result = log.reader.read(offset, 1 << 20, upper_bound=bound, blocking=True)
            if result is None or not result.parts:
                break
            data = memoryview(b"".join(result.parts))
            for position, header in iter_batches(data):
                batch = data[position : position + header.size_in_bytes]
                found += [(header, record) for record in iter_records(batch, header)]
            offset = result.next_offset
        return found
