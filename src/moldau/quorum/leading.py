"""What only the leader of the quorum has: the active controller, and records on their way into the log.

A decision of the controller goes to the runtime; its records wait in the accumulator until the end of the
loop's turn, are appended together and synced. They are committed when a majority of the voters has them on
disk, which for a quorum of one is at once; then the answers are released.

When there is no room on the disk, or too many files are open, a quorum of one cuts the group off again,
everybody who waits gets the error, and the controller goes back to what is committed; later it may work
again. A leader with followers gives up leading instead: another node may have room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.controller.controller import Controller
from moldau.controller.state import UpgradeQuorum
from moldau.metadata.features import MIN_METADATA_VERSION
from moldau.metadata.records import MetadataRecord
from moldau.quorum.accumulator import MAX_WAITING_BYTES, Accumulator, Group
from moldau.quorum.bootstrap import metadata_version_of, read_bootstrap
from moldau.quorum.committed import CommittedMetadata, Waiting
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.statemachine.runtime import Runtime
from moldau.storage.disk.disk import Disk

log = logging.getLogger(__name__)

NOT_ACTIVE = "This node is not the active controller."


class Leading:
    """`wake` is called when there is something to write."""

    def __init__(
        self,
        controller: Controller,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        settings: QuorumSettings,
        *,
        disk: Disk,
        clock: Clock,
        pool: Pool,
    ) -> None:
        self.controller = controller
        self._log = metadata_log
        self._committed = committed
        self._settings = settings
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._runtime: Runtime[MetadataRecord] | None = None
        self._accumulator: Accumulator | None = None
        self._first_version = MIN_METADATA_VERSION

    @property
    def is_active(self) -> bool:
        return self._runtime is not None

    @property
    def runtime(self) -> Runtime[MetadataRecord]:
        if self._runtime is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return self._runtime

    @property
    def has_records(self) -> bool:
        return self._accumulator is not None and not self._accumulator.is_empty

    async def activate(
        self, kraft_version: int, upgrade_quorum: UpgradeQuorum, wake: Callable[[], None]
    ) -> None:
        """Make the controller active: everything before this epoch is committed and in the image."""
        image = self._committed.image
        bootstrap: list[MetadataRecord] = []
        if image.features.metadata_version is None:
            bootstrap = await self._pool.run(read_bootstrap, self._disk, self._settings.directory)
            self._first_version = metadata_version_of(bootstrap, self._settings.directory)
        # A group goes into one segment; half of it leaves room for the framing of small records.
        self._accumulator = Accumulator(
            self._log.end_offset,
            self._settings.max_batch_bytes,
            min(MAX_WAITING_BYTES, self._settings.segment_bytes // 2),
            self._metadata_version,
            wake,
        )
        self.controller.reset(image, self._log.end_offset)
        self._runtime = Runtime(self._accumulator, self.controller.replay)
        now_ms = int(self._clock.monotonic() * 1000)
        self._runtime.take(
            lambda: self.controller.activate(
                bootstrap,
                in_transaction=self._committed.in_transaction,
                kraft_version=kraft_version,
                now_ms=now_ms,
                upgrade_quorum=upgrade_quorum,
            )
        )

    def _metadata_version(self) -> int:
        return self.controller.image.features.metadata_version or self._first_version

    async def write_group(self, epoch: int) -> int:
        """Bring what was decided by now to disk; gives how many bytes. `KafkaError`: it is not in the log."""
        group = self._taken()
        size = self._log.append(group.batches, epoch)
        end = group.base_offset + len(group.records)
        timestamp = self._log.last_timestamp
        try:
            await self._pool.run(self._log.flush)
        except KafkaError:
            self._log.cut(group.base_offset)
            raise
        self._committed.appended(Waiting(group.base_offset, end, group.records, epoch, timestamp, size))
        return size

    def _taken(self) -> Group:
        if self._accumulator is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return self._accumulator.take()

    def skip(self, count: int) -> None:
        """So many records of the quorum's own were appended; nothing waits to be written."""
        if self._accumulator is not None:
            self._accumulator.skip(count)

    def committed(self, end_offset: int) -> None:
        if self._runtime is not None:
            self._runtime.committed(end_offset - 1)

    def lose(self, error: KafkaError) -> None:
        """What was decided and is not in the log never happened; all that is in the log is committed."""
        log.error("metadata could not be written, it is as before: %s", error)
        end = self._log.end_offset
        if self._accumulator is not None and self._runtime is not None:
            self._accumulator.reset(end)
            self.controller.reset(self._committed.image, end)
            self._runtime.failed(error)

    def refuse(self, error: KafkaError) -> None:
        """Decide nothing more; what is under way goes on."""
        if self._runtime is not None:
            self._runtime.refuse(error)

    def end(self, error: KafkaError) -> None:
        """Another node may lead from now on: what is not committed yet may be lost."""
        runtime, self._runtime, self._accumulator = self._runtime, None, None
        if runtime is not None:
            runtime.close(error)
            self.controller.reset(self._committed.image, self._log.end_offset)
