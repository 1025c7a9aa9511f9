"""The leader's part of the metadata quorum: the active controller and its writes to the log.

A decision of the controller is appended to the accumulator. At the end of the event loop's iteration, all
decisions of that iteration are appended to the log together and synced. They are committed when a majority of
the voters has them (for a quorum of one at once); then the controller's clients get their responses.

If the disk is full or too many files are open, a quorum of one truncates the failed write, fails the pending
requests and resets the controller to the committed metadata; later writes may succeed. A leader with other
voters resigns instead, because another node may be able to write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.controller.controller import Controller
from moldau.metadata.features import MIN_METADATA_VERSION
from moldau.metadata.records import MetadataRecord
from moldau.protocol.schema import Message
from moldau.quorum.accumulator import MAX_PENDING_BYTES, Accumulator
from moldau.quorum.batches import leader_change, voter_changes, voter_records
from moldau.quorum.bootstrap import metadata_version_of, read_bootstrap
from moldau.quorum.committed import CommittedMetadata, UncommittedRecords
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.raft.raft import Raft
from moldau.statemachine.runtime import Runtime
from moldau.storage.disk.disk import Disk, LogDirectoryFailed

logger = logging.getLogger(__name__)

NOT_ACTIVE = "This node is not the active controller."


class QuorumLeader:
    """Its asynchronous methods run in the driver's queue."""

    def __init__(
        self,
        raft: Raft,
        controller: Controller,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        settings: QuorumSettings,
        *,
        disk: Disk,
        clock: Clock,
        pool: Pool,
    ) -> None:
        self._raft = raft
        self._controller = controller
        self._log = metadata_log
        self._committed = committed
        self._settings = settings
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._runtime: Runtime[MetadataRecord] | None = None
        self._accumulator: Accumulator | None = None
        self._bootstrap_metadata_version = MIN_METADATA_VERSION
        #: The epoch that this node leads; -1 if it is not the leader.
        self._epoch = -1

    @property
    def is_active(self) -> bool:
        return self._runtime is not None

    @property
    def runtime(self) -> Runtime[MetadataRecord]:
        """The runtime of the active controller."""
        if self._runtime is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return self._runtime

    @property
    def has_pending_records(self) -> bool:
        return self._accumulator is not None and not self._accumulator.is_empty

    def _now_ms(self) -> float:
        return self._clock.monotonic() * 1000

    # Role changes.

    async def follow_role(self) -> bool:
        """Start or end leadership if Raft's role has changed; whether it has."""
        quorum = self._raft.quorum
        epoch = quorum.epoch if quorum.is_leader else -1
        if epoch == self._epoch:
            return False
        if self._epoch >= 0:
            logger.info(
                "resigned as leader of the metadata quorum; the epoch is now %d",
                quorum.epoch,
                extra=event("controller.resigned", epoch=quorum.epoch),
            )
            self.deactivate(KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE))
        self._epoch = epoch
        if epoch >= 0:
            await self._start_epoch()
        return True

    async def _start_epoch(self) -> None:
        """Append the LeaderChange record, and the voter set if the log does not contain it yet."""
        quorum = self._raft.quorum
        granting_voters = [] if quorum.leader is None else quorum.leader.granting_voters
        messages: list[Message] = [leader_change(quorum.local.id, quorum.voters.ids, granting_voters)]
        if (voters := quorum.epoch_start_voters) is not None:
            messages += voter_records(quorum.kraft_version, voters)
        await self.append_control(messages)

    async def activate(
        self, on_pending_records: Callable[[], None], on_raft_change: Callable[[], None]
    ) -> bool:
        """Activate the controller once the epoch's first record is committed; whether that happened now.

        `on_pending_records` is called when there are records to write, `on_raft_change` when Raft has new
        effects.
        """
        quorum = self._raft.quorum
        if self._epoch < 0 or self.is_active or quorum.leader is None:
            return False
        if quorum.high_watermark <= quorum.leader.epoch_start_offset:
            return False

        def upgrade_kraft_version(version: int, validate_only: bool) -> None:
            self._raft.upgrade_kraft_version(version, validate_only=validate_only)
            if not validate_only:
                on_raft_change()

        bootstrap = await self._bootstrap_records()
        image, end_offset = self._committed.image, self._log.end_offset
        # A group is written to one segment; half its size leaves room for the framing of small records.
        self._accumulator = Accumulator(
            end_offset,
            self._settings.max_batch_bytes,
            min(MAX_PENDING_BYTES, self._settings.segment_bytes // 2),
            self._metadata_version,
            on_pending_records,
        )
        self._controller.reset(image, end_offset)
        self._runtime = Runtime(self._accumulator, self._controller.replay)
        now_ms = int(self._now_ms())
        self._runtime.take(
            lambda: self._controller.activate(
                bootstrap,
                in_transaction=self._committed.in_transaction,
                kraft_version=quorum.kraft_version,
                now_ms=now_ms,
                upgrade_quorum=upgrade_kraft_version,
            )
        )
        logger.info(
            "leader of the metadata quorum in epoch %d from offset %d",
            quorum.epoch,
            self._log.end_offset,
            extra=event("controller.active", epoch=quorum.epoch),
        )
        return True

    async def _bootstrap_records(self) -> list[MetadataRecord]:
        """Read the records for an empty log; none if the log has metadata already."""
        if self._committed.image.features.metadata_version is not None:
            return []
        directory = self._settings.directory
        records = await self._pool.run(read_bootstrap, self._disk, directory)
        self._bootstrap_metadata_version = metadata_version_of(records, directory)
        return records

    def _metadata_version(self) -> int:
        return self._controller.image.features.metadata_version or self._bootstrap_metadata_version

    def deactivate(self, error: KafkaError) -> None:
        """Fail all pending requests: records that are not committed may be lost to a new leader."""
        runtime, self._runtime, self._accumulator = self._runtime, None, None
        if runtime is not None:
            runtime.close(error)
            self._controller.reset(self._committed.image, self._log.end_offset)

    def reject_new_requests(self, error: KafkaError) -> None:
        """Accept no new decisions; pending ones still complete."""
        if self._runtime is not None:
            self._runtime.refuse(error)

    # Writes.

    async def append_control(self, messages: Sequence[Message]) -> None:
        """Append and sync control records. No metadata records may be pending."""
        start = self._log.end_offset
        try:
            batch = self._log.append_control(messages, self._epoch)
            if self._accumulator is not None:
                self._accumulator.skip(len(messages))
            await self._pool.run(self._log.flush)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            self._log.truncate(start)
            self._write_failed(error)
            return
        self._committed.append(UncommittedRecords.from_batch(batch))
        for change in voter_changes(batch.control, batch.header.base_offset):
            self._raft.voters_changed(*change)
        self._raft.appended(self._now_ms())

    async def write_pending_records(self) -> None:
        """Append and sync the records that are pending now, as one group."""
        try:
            await self._write_group()
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            self._write_failed(error)
            return
        self._raft.appended(self._now_ms())

    async def _write_group(self) -> None:
        if self._accumulator is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        group = self._accumulator.take()
        size = self._log.append(group.batches, self._epoch)
        end_offset = group.base_offset + len(group.records)
        timestamp = self._log.last_timestamp
        try:
            await self._pool.run(self._log.flush)
        except KafkaError:
            self._log.truncate(group.base_offset)
            raise
        self._committed.append(
            UncommittedRecords(group.base_offset, end_offset, group.records, self._epoch, timestamp, size)
        )

    def _write_failed(self, error: KafkaError) -> None:
        """Handle a disk that is full or has too many open files."""
        if len(self._raft.quorum.voters.voters) > 1:
            logger.error("resigning as leader, because the metadata log cannot be written: %s", error)
            self.deactivate(error)
            self._raft.resign(self._now_ms())
        elif self.is_active:
            self._reset_to_committed(error)
        else:
            raise error

    def _reset_to_committed(self, error: KafkaError) -> None:
        """Undo the decisions that are not in the log. In a quorum of one, all records in it are committed."""
        logger.error("metadata records could not be written and are discarded: %s", error)
        end_offset = self._log.end_offset
        if self._accumulator is not None and self._runtime is not None:
            self._accumulator.reset(end_offset)
            self._controller.reset(self._committed.image, end_offset)
            self._runtime.failed(error)

    def high_watermark_advanced(self, high_watermark: int) -> None:
        """Send the responses whose records are committed."""
        if self._runtime is not None:
            self._runtime.committed(high_watermark - 1)
