"""The metadata quorum as the rest of a node uses it: the image, the leader, and the active controller.

Every node follows the log and has the image. A node whose `process.roles` contains `controller` can vote and
lead; while it leads, its controller is active and `write` passes decisions to it. A quorum of one is not a
special case: its only voter becomes the leader at once.
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
from moldau.network.connector import PLAINTEXT, Connector
from moldau.protocol.schema import Message
from moldau.quorum.committed import CommittedMetadata, OnImage
from moldau.quorum.driver import RaftDriver
from moldau.quorum.follower import QuorumFollower
from moldau.quorum.leader import NOT_ACTIVE, QuorumLeader
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.quorum_state_file import QuorumStateFile
from moldau.quorum.recovery import check_quorum_state, check_voter, recover
from moldau.quorum.request_handler import QuorumRequestHandler
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshotter import Snapshotter
from moldau.quorum.transport import ChannelCounts
from moldau.raft.raft import Raft
from moldau.raft.types import NO_LEADER, NO_VOTE, ElectionState, QuorumView, Role
from moldau.raft.voters import STATIC, VoterEndpoint, VoterSet
from moldau.statemachine.decision import Decision
from moldau.storage.disk.disk import Disk

logger = logging.getLogger(__name__)

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
        connector: Connector = PLAINTEXT,
    ) -> None:
        self.settings = settings
        self._controller = controller
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._randomness = randomness
        self._on_failure = on_failure
        self._connector = connector
        self._image_listeners: list[OnImage] = []
        self._leader_listeners: list[Callable[[], None]] = []
        self._leader: QuorumLeader | None = None
        #: Decisions that were committed, and the time that they took.
        self.commits = 0
        self.commit_seconds = 0.0
        #: None before `start`.
        self._driver: RaftDriver | None = None

    # State.

    @property
    def controller(self) -> Controller:
        """The controller of this node, active or not."""
        if self._controller is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return self._controller

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return MetadataImage.empty() if self._driver is None else self._committed.image

    @property
    def is_started(self) -> bool:
        """Whether the log is recovered and this node takes part in the quorum."""
        return self._driver is not None

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller. False as soon as another epoch has started, even if
        that is not durable yet."""
        is_leader = self._driver is not None and self._driver.raft.quorum.is_leader
        return is_leader and self._leader is not None and self._leader.is_active

    @property
    def leader_id(self) -> int:
        """The active controller as far as this node knows; -1 if unknown."""
        return NO_LEADER if self._driver is None else self._driver.raft.quorum.leader_id

    @property
    def leader_epoch(self) -> int:
        return 0 if self._driver is None else self._driver.raft.quorum.epoch

    @property
    def leader_endpoint(self) -> VoterEndpoint | None:
        """The endpoint of the active controller; None if unknown."""
        return None if self._driver is None else self._driver.raft.quorum.leader_endpoint

    @property
    def voters(self) -> VoterSet:
        return self.settings.static_voters if self._driver is None else self._driver.raft.quorum.voters

    @property
    def kraft_version(self) -> int:
        return STATIC if self._driver is None else self._driver.raft.quorum.kraft_version

    @property
    def directory_id(self) -> DirectoryId:
        """The directory id that this node votes with; zero in a static quorum, which has none."""
        return ZERO_UUID if self.kraft_version == STATIC else self.settings.directory_id

    @property
    def role(self) -> Role:
        """The role of this node in the quorum."""
        return Role.UNATTACHED if self._driver is None else self._driver.raft.quorum.role

    @property
    def voted_id(self) -> int:
        """The voter that this node voted for in the present epoch; -1 if none."""
        return NO_VOTE if self._driver is None else self._driver.raft.quorum.election_state.voted_id

    @property
    def is_voter(self) -> bool:
        return self._driver is not None and self._driver.raft.quorum.is_voter

    @property
    def channel_counts(self) -> ChannelCounts:
        transport = None if self._driver is None else self._driver.transport
        return ChannelCounts() if transport is None else transport.counts

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        return self._log.log.high_watermark

    def describe(self) -> QuorumView | None:
        """Return the progress of all replicas; None if this node is not the leader. Times are those of
        `clock.monotonic`, in milliseconds."""
        if self._driver is None:
            return None
        return self._driver.raft.describe(self._driver.now_ms())

    # Listeners.

    def add_listener(self, on_image: OnImage) -> None:
        """Call `on_image` with each new image and its delta, before any client gets a response."""
        self._image_listeners.append(on_image)

    def on_leader_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the leader changes or becomes unknown, and when the controller of this node
        becomes active or inactive."""
        self._leader_listeners.append(callback)

    def _notify_leader_listeners(self) -> None:
        for callback in self._leader_listeners:
            callback()

    # The active controller.

    async def write(self, decide: Callable[[], Decision[MetadataRecord, R]]) -> R:
        """Make a decision now; return its response when its records are committed and published."""
        begin = self._clock.monotonic()
        response = await self._active_leader.runtime.write(decide)
        self.commits += 1
        self.commit_seconds += self._clock.monotonic() - begin
        return response

    async def read(self, look: Callable[[], R]) -> R:
        """Read the controller's state now; return the result when it is committed."""
        return await self._active_leader.runtime.read(look)

    @property
    def _active_leader(self) -> QuorumLeader:
        """A leader whose process was suspended may have been replaced without having noticed."""
        driver, leader = self._driver, self._leader
        if driver is None or leader is None or not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        state = driver.raft.quorum.leader
        if state is None or state.is_past_check_quorum(driver.now_ms()):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
        return leader

    # Other nodes of the quorum.

    async def handle(self, request: Message, version: int) -> Message:
        """Handle a request of the Raft protocol."""
        if self._driver is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The metadata quorum has not started yet.")
        return await self._request_handler.handle(request, version)

    async def caught_up_with_leader(self) -> None:
        """Wait until there is a leader and the image contains everything it had committed."""
        driver = self._driver
        while driver is not None and not self.is_active and not self._is_caught_up(driver):
            await asyncio.wait([driver.next_change])

    def _is_caught_up(self, driver: RaftDriver) -> bool:
        return 0 < driver.leader_high_watermark <= self._committed.end_offset

    # Start, maintenance and stop.

    async def start(self) -> None:
        """Recover the log and join the quorum; raise `UnusableMetadata` if the folder cannot be used.

        This does not wait for other nodes. The only voter is the leader when it returns.
        """
        settings, disk, clock, pool = self.settings, self._disk, self._clock, self._pool
        state_file = QuorumStateFile(disk, pool, settings)
        stored = await pool.run(state_file.read)
        led_epoch = stored.leader_epoch if stored and stored.leader_id == settings.node_id else -1
        self._log = await pool.run(MetadataLog.open, disk, clock, settings, led_epoch)
        recovered = await pool.run(recover, self._log, disk, settings)
        history = recovered.history
        check_voter(settings, history)
        check_quorum_state(settings, history, stored, self._log.end)
        self._committed = CommittedMetadata(
            self._log, pool, recovered.loader, recovered.end_offset, self._image_listeners
        )
        if recovered.end_offset > 0:
            # A snapshot is committed, and it may take long until records after it are.
            self._committed.publish()
        self._snapshotter = Snapshotter(
            self._log,
            self._committed,
            history,
            settings,
            disk=disk,
            clock=clock,
            pool=pool,
            uncovered_bytes=recovered.uncovered_bytes,
        )
        now_ms = clock.monotonic() * 1000
        raft = Raft(settings.raft, self._log, stored or ElectionState(), history, self._randomness, now_ms)
        self._driver = driver = self._make_driver(raft, state_file)
        self._request_handler = QuorumRequestHandler(driver, self._log, settings, disk=disk, pool=pool)
        await driver.start()
        if self.is_active:
            await self.read(lambda: None)

    def _make_driver(self, raft: Raft, state_file: QuorumStateFile) -> RaftDriver:
        settings, disk, clock, pool = self.settings, self._disk, self._clock, self._pool
        if self._controller is not None:
            self._leader = QuorumLeader(
                raft,
                self._controller,
                self._log,
                self._committed,
                settings,
                disk=disk,
                clock=clock,
                pool=pool,
            )
        return RaftDriver(
            raft,
            self._log,
            self._committed,
            self._leader,
            QuorumFollower(self._log, self._committed, settings, disk=disk, pool=pool),
            state_file,
            settings,
            clock=clock,
            connector=self._connector,
            on_committed=self._snapshotter.bytes_committed,
            on_leader_change=self._notify_leader_listeners,
            on_failure=self._fail,
        )

    async def maintain(self) -> None:
        """Write a snapshot if one is due, and delete expired ones; to be called periodically."""
        if self._driver is not None:
            await self._snapshotter.maintain(self._driver.run)

    async def close(self) -> None:
        """Accept no more decisions, finish the pending ones, resign, and close the log."""
        if self._driver is None:
            return
        await self._driver.close()
        await self._snapshotter.close()
        if not self._driver.failed:
            try:
                await self._pool.run(self._log.close)
            except KafkaError as error:
                logger.error(
                    "the metadata log was not closed cleanly and will be recovered at the next start: %s",
                    error,
                )

    def _fail(self, error: Exception) -> None:
        if self._leader is not None:
            reason = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
            self._leader.deactivate(reason)
        self._on_failure(error)
