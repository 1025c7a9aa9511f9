"""The metadata quorum as the rest of a node sees it: the image, who leads, and, where the controller is
active, decisions.

Every node follows the log and has the image. A node whose `process.roles` has controller may vote and lead;
when it leads, its controller is active, and `write` hands a decision to it. A quorum of one is no special
case: it leads at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, DirectoryId, Randomness
from moldau.base.pool import Pool
from moldau.controller.controller import Controller
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.network.client import OpenConnection
from moldau.protocol.schema import Message
from moldau.quorum.committed import CommittedMetadata, OnImage
from moldau.quorum.following import Following
from moldau.quorum.leading import NOT_ACTIVE, Leading
from moldau.quorum.loading import Loaded, load
from moldau.quorum.member import Member
from moldau.quorum.membership import check_membership, check_memory
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.serving import Serving
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshotter import Snapshotter
from moldau.quorum.state_file import StateFile
from moldau.raft.raft import Raft
from moldau.raft.types import NOBODY, Election, QuorumView
from moldau.raft.voters import STATIC, VoterEndpoint, VoterSet
from moldau.statemachine.decision import Decision
from moldau.storage.disk.disk import Disk

log = logging.getLogger(__name__)

R = TypeVar("R")


class MetadataQuorum:
    """`controller` is None on a node that is only a broker."""

    def __init__(
        self,
        settings: QuorumSettings,
        controller: Controller | None,
        *,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        randomness: Randomness,
        on_failure: Callable[[Exception], None],
        open_connection: OpenConnection | None = None,
    ) -> None:
        self.settings = settings
        self._controller = controller
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._randomness = randomness
        self._on_failure = on_failure
        self._open_connection = open_connection
        self._listeners: list[OnImage] = []
        self._leader_listeners: list[Callable[[], None]] = []
        self._snapshot_lock = asyncio.Lock()
        self._snapshot_task: asyncio.Task[None] | None = None
        self._leading: Leading | None = None
        self._member: Member | None = None

    # What is so.

    @property
    def controller(self) -> Controller:
        """The controller of this node, active or not."""
        if self._controller is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return self._controller

    @property
    def image(self) -> MetadataImage:
        """What is committed."""
        return MetadataImage.empty() if self._member is None else self._committed.image

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller. It no longer is when another epoch has begun, though
        that may not be on disk yet."""
        leads = self._member is not None and self._member.rules.is_leader
        return leads and self._leading is not None and self._leading.is_active

    @property
    def leader_id(self) -> int:
        """The active controller as far as this node knows; -1 when it does not."""
        return NOBODY if self._member is None else self._member.rules.leader_id

    @property
    def leader_epoch(self) -> int:
        return 0 if self._member is None else self._member.rules.epoch

    @property
    def leader_endpoint(self) -> VoterEndpoint | None:
        """Where the active controller listens; None while nobody knows."""
        return None if self._member is None else self._member.rules.leader_endpoint

    @property
    def voters(self) -> VoterSet:
        return self.settings.static_voters if self._member is None else self._member.rules.voters

    @property
    def kraft_version(self) -> int:
        return STATIC if self._member is None else self._member.rules.kraft_version

    @property
    def directory_id(self) -> DirectoryId:
        """The directory this node votes with; zero in a static quorum, which knows none."""
        return ZERO_UUID if self.kraft_version == STATIC else self.settings.directory_id

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        return self._log.log.high_watermark

    def describe(self) -> QuorumView | None:
        """How far everybody is; None: only the leader knows. Times are those of `clock.monotonic`, in ms."""
        if self._member is None:
            return None
        return self._member.rules.describe(self._member.now_ms())

    # What others do.

    def add_listener(self, on_image: OnImage) -> None:
        """Called with every image from now on, and what is different in it, before anybody is answered."""
        self._listeners.append(on_image)

    def on_leader_change(self, callback: Callable[[], None]) -> None:
        """Called whenever another node, or nobody, leads, and when the controller here gets or stops
        being active."""
        self._leader_listeners.append(callback)

    async def write(self, decide: Callable[[], Decision[MetadataRecord, R]]) -> R:
        """Decide now; the response, when what was decided is committed and published."""
        return await self._active.runtime.write(decide)

    async def read(self, look: Callable[[], R]) -> R:
        """Look now; what was seen, when it is committed."""
        return await self._active.runtime.read(look)

    @property
    def _active(self) -> Leading:
        """A process that stood still has not noticed yet that another node may lead by now."""
        member, leading = self._member, self._leading
        if not self.is_active or leading is None or member is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        if member.rules.is_overdue(member.now_ms()):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return leading

    async def handle(self, request: Message, version: int) -> Message:
        """Answer a request of the quorum's own kind."""
        if self._member is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The metadata quorum has not started yet.")
        return await self._serving.handle(request, version)

    async def caught_up_with_leader(self) -> None:
        """Until there is a leader, and everything it had committed by then is in the image."""
        member = self._member
        while member is not None and not self.is_active and not self._is_caught_up(member):
            await asyncio.wait([member.news])

    def _is_caught_up(self, member: Member) -> bool:
        return 0 < member.correspondence.leader_high_watermark <= self._committed.position

    # Start and stop.

    async def start(self) -> None:
        """Load the log and take part; `UnusableMetadata` says why not. This does not wait for the others; the
        only voter leads when it returns."""
        state_file = StateFile(self._disk, self._pool, self.settings)
        stored = await self._pool.run(state_file.read)
        led_epoch = stored.leader_epoch if stored and stored.leader_id == self.settings.node_id else -1
        self._log = await self._pool.run(MetadataLog.open, self._disk, self._clock, self.settings, led_epoch)
        loaded = await self._pool.run(load, self._log, self._disk, self.settings)
        check_membership(self.settings, loaded.history)
        check_memory(self.settings, loaded.history, stored, self._log.end)
        self._take_over(loaded)
        now_ms = self._clock.monotonic() * 1000
        rules = Raft(
            self.settings.raft, self._log, stored or Election(), loaded.history, self._randomness, now_ms
        )
        self._member = Member(
            self.settings,
            rules,
            self._log,
            self._committed,
            self._leading,
            Following(self._log, self._committed, self.settings, disk=self._disk, pool=self._pool),
            state_file,
            clock=self._clock,
            pool=self._pool,
            open_connection=self._open_connection,
            on_failure=self._failed,
        )
        self._member.on_committed = self._wrote
        self._member.on_leader_change = self._leader_listeners
        self._serving = Serving(self._member, self._log, self.settings, disk=self._disk, pool=self._pool)
        await self._member.start()
        if self.is_active:
            await self.read(lambda: None)

    def _take_over(self, loaded: Loaded) -> None:
        self._history = loaded.history
        self._committed = CommittedMetadata(self._log, self._pool, loaded.loader, loaded.position)
        self._committed.listeners = self._listeners
        if loaded.position > 0:
            # A snapshot is committed; there may be nothing after it for a long time.
            self._committed.publish()
        self._snapshotter = Snapshotter(self._disk, self._clock, self.settings, loaded.new_bytes)
        if self._controller is not None:
            self._leading = Leading(
                self._controller,
                self._log,
                self._committed,
                self.settings,
                disk=self._disk,
                clock=self._clock,
                pool=self._pool,
            )

    async def close(self) -> None:
        """Take no more decisions, finish those under way, let another lead, and leave the log clean."""
        if self._member is None:
            return
        await self._member.close()
        if self._snapshot_task is not None:
            await asyncio.gather(self._snapshot_task, return_exceptions=True)
        if not self._member.failed:
            try:
                await self._pool.run(self._log.close)
            except KafkaError as error:
                log.error("the metadata log is not left clean, the next start looks at its end: %s", error)

    def _failed(self, error: Exception) -> None:
        if self._leading is not None:
            reason = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
            self._leading.end(reason)
        self._on_failure(error)

    # Snapshots.

    def _wrote(self, size: int) -> None:
        self._snapshotter.wrote(size)
        if self._snapshotter.is_due() and not self._snapshot_lock.locked():
            self._snapshot_task = asyncio.create_task(self._snapshot())

    async def maintain(self) -> None:
        """To be called now and then: a snapshot if it is time, and old ones and the log before them go."""
        await self._snapshot()
        member = self._member
        if member is None:
            return
        async with self._snapshot_lock:
            gone, kept = await self._pool.run(self._snapshotter.expired, self._log.log.size)
            if gone and kept is not None:

                async def trim() -> None:
                    self._log.start_at(kept)
                    self._log.snapshots_removed(gone)
                    self._history.forget_before(kept.end_offset)

                await member.run(trim)
                await self._pool.run(self._snapshotter.remove, gone)
            await self._pool.run(self._log.log.remove_deleted_files)

    async def _snapshot(self) -> None:
        async with self._snapshot_lock:
            if not self._snapshotter.is_due() or self._committed.in_transaction:
                return
            self._snapshotter.begin()
            image, timestamp = self.image, self._committed.timestamp
            dynamic = self._history.kraft_version_at(image.offset) > STATIC
            voters = self._history.voters_at(image.offset) if dynamic else None
            try:
                written = await self._pool.run(self._snapshotter.write, image, timestamp, voters)
            except OSError as error:
                # The log still holds everything; the next one may work.
                log.error("the metadata snapshot at offset %d failed: %s", image.offset, error)
            else:
                # The log may have begun anew behind it meanwhile, at a snapshot of the leader.
                if written.end_offset >= self._log.start_offset:
                    self._log.snapshot_written(written)
