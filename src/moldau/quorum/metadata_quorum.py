"""The metadata quorum as the rest of a node sees it; here a quorum of one, which always leads.

`write` hands a decision of the controller to the runtime; its records wait in the accumulator until the end
of the loop's turn, are appended together, synced by a thread of the pool, and then committed: the image is
published to the listeners, synchronously and in order, and the answers are released.

When there is no room on the disk, or too many files are open, the group is cut off again, everybody who waits
gets the error, and the controller goes back to what is committed; later it may work again. A disk that fails
ends the quorum.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.base.pool import Pool
from moldau.controller.controller import Controller
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import MIN_METADATA_VERSION
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.quorum.accumulator import MAX_WAITING_BYTES, Accumulator, Group
from moldau.quorum.bootstrap import metadata_version_of, read_bootstrap
from moldau.quorum.metadata_log import Loaded, MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshotter import Snapshotter
from moldau.raft.voters import STATIC, VoterEndpoint, VoterSet
from moldau.statemachine.decision import Decision
from moldau.statemachine.runtime import Runtime
from moldau.storage.disk import Disk, LogDirectoryFailed

log = logging.getLogger(__name__)

R = TypeVar("R")
OnImage = Callable[[MetadataDelta, MetadataImage], None]


class MetadataQuorum:
    def __init__(
        self,
        settings: QuorumSettings,
        controller: Controller,
        *,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.controller = controller
        #: What is committed.
        self.image = MetadataImage.empty()
        self.voters = VoterSet()
        self.kraft_version = STATIC
        self._settings = settings
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._on_failure = on_failure
        self._listeners: list[OnImage] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._snapshot_lock = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._snapshot_task: asyncio.Task[None] | None = None
        self._first_version = MIN_METADATA_VERSION
        self._last_timestamp = 0

    # What others ask.

    @property
    def leader_id(self) -> int:
        return self._settings.node_id

    @property
    def leader_epoch(self) -> int:
        return self._log.epoch

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""
        return self._writer is not None

    @property
    def leader_endpoint(self) -> VoterEndpoint | None:
        """Where the active controller listens; None while nobody knows."""
        return next(iter(self._settings.endpoints), None)

    def on_leader_change(self, callback: Callable[[], None]) -> None:
        """Called whenever another node, or nobody, is the active controller; here nobody else ever is."""

    async def caught_up_with_leader(self) -> None:
        """Until there is a leader, and everything it had committed by then is in the image."""

    @property
    def directory_id(self) -> DirectoryId:
        """The directory this node votes with; zero in a static quorum, which knows none."""
        return ZERO_UUID if self.kraft_version == STATIC else self._settings.directory_id

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        return self._log.log.high_watermark

    def add_listener(self, on_image: OnImage) -> None:
        """Called with every image from now on, and what is different in it, before anybody is answered."""
        self._listeners.append(on_image)

    async def write(self, decide: Callable[[], Decision[MetadataRecord, R]]) -> R:
        """Decide now; the response, when what was decided is committed and published."""
        return await self._runtime.write(decide)

    async def read(self, look: Callable[[], R]) -> R:
        """Look now; what was seen, when it is committed."""
        return await self._runtime.read(look)

    # Start and stop.

    async def start(self) -> None:
        """Load the log, lead, and give an empty log its first records; `UnusableMetadata` says why not."""
        self._log = await self._pool.run(MetadataLog.open, self._disk, self._clock, self._settings)
        loaded = await self._pool.run(self._log.load)
        loaded.new_bytes += await self._pool.run(self._log.lead, loaded)
        self._take_over(loaded)
        self._writer = asyncio.create_task(self._write_groups())
        self._writer.add_done_callback(self._writer_ended)
        bootstrap: list[MetadataRecord] = []
        if self.image.features.metadata_version is None:
            bootstrap = await self._pool.run(read_bootstrap, self._disk, self._settings.directory)
            self._first_version = metadata_version_of(bootstrap, self._settings.directory)
        in_transaction = self._loader.transaction_start is not None
        now_ms = int(self._clock.monotonic() * 1000)
        await self.write(
            lambda: self.controller.activate(
                bootstrap,
                in_transaction=in_transaction,
                kraft_version=self.kraft_version,
                now_ms=now_ms,
            )
        )
        log.info(
            "leading the metadata quorum in epoch %d from offset %d", self.leader_epoch, self.log_end_offset
        )

    def _take_over(self, loaded: Loaded) -> None:
        self._loader = loaded.loader
        self._last_timestamp = self._log.last_timestamp
        self.voters, self.kraft_version = loaded.voters, loaded.kraft_version
        self._snapshotter = Snapshotter(self._disk, self._clock, self._settings, loaded.new_bytes)
        # A group goes into one segment; half of it leaves room for the framing of small records.
        self._accumulator = Accumulator(
            self._log.end_offset,
            self._settings.max_batch_bytes,
            min(MAX_WAITING_BYTES, self._settings.segment_bytes // 2),
            self._metadata_version,
            self._wake_writer,
        )
        self._publish()
        self.controller.reset(self.image, self._log.end_offset)
        self._runtime: Runtime[MetadataRecord] = Runtime(self._accumulator, self.controller.replay)
        self._idle.set()

    async def close(self) -> None:
        """Take no more decisions, finish those under way, and leave the log clean."""
        if self._writer is None:
            return
        self._runtime.refuse(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
        await self._idle.wait()
        failed = self._writer.done()
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)
        if self._snapshot_task is not None:
            await asyncio.gather(self._snapshot_task, return_exceptions=True)
        if not failed:
            await self._pool.run(self._log.close)

    # Writing.

    def _metadata_version(self) -> int:
        return self.controller.image.features.metadata_version or self._first_version

    def _wake_writer(self) -> None:
        self._idle.clear()
        self._wake.set()

    async def _write_groups(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while not self._accumulator.is_empty:
                await self._write_group(self._accumulator.take())
            self._idle.set()
            if self._snapshotter.is_due() and not self._snapshot_lock.locked():
                self._snapshot_task = asyncio.create_task(self._snapshot())

    async def _write_group(self, group: Group) -> None:
        try:
            size = self._log.append(group.batches)
            timestamp = self._log.last_timestamp
            await self._pool.run(self._log.flush)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            self._lose(group, error)
            return
        end_offset = group.base_offset + len(group.records)
        self._log.committed(end_offset)
        self._snapshotter.wrote(size)
        self._last_timestamp = timestamp
        self._loader.replay(group.records, group.base_offset, self.leader_epoch)
        self._publish()
        self._runtime.committed(end_offset - 1)

    def _publish(self) -> None:
        delta, self.image = self._loader.publish()
        for on_image in self._listeners:
            on_image(delta, self.image)

    def _lose(self, group: Group, error: KafkaError) -> None:
        log.error("metadata could not be written, it is as before: %s", error)
        self._log.cut(group.base_offset)
        self._accumulator.reset(group.base_offset)
        self.controller.reset(self.image, group.base_offset)
        self._runtime.failed(error)

    def _writer_ended(self, writer: asyncio.Task[None]) -> None:
        error = None if writer.cancelled() else writer.exception()
        if error is not None:
            self._idle.set()
            self._runtime.close(
                KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
            )
            self._on_failure(error if isinstance(error, Exception) else RuntimeError(str(error)))

    # Snapshots.

    async def maintain(self) -> None:
        """To be called now and then: a snapshot if it is time, and old ones and the log before them go."""
        await self._snapshot()
        async with self._snapshot_lock:
            gone, kept = await self._pool.run(self._snapshotter.expired, self._log.log.size)
            if gone and kept is not None:
                self._log.start_at(kept)
                await self._pool.run(self._snapshotter.remove, gone)
            await self._pool.run(self._log.log.remove_deleted_files)

    async def _snapshot(self) -> None:
        async with self._snapshot_lock:
            if not self._snapshotter.is_due() or self._loader.transaction_start is not None:
                return
            self._snapshotter.begin()
            image = self.image
            voters = None if self.kraft_version == STATIC else self.voters
            try:
                await self._pool.run(self._snapshotter.write, image, self._last_timestamp, voters)
            except OSError as error:
                # The log still holds everything; the next one may work.
                log.error("the metadata snapshot at offset %d failed: %s", image.offset, error)
