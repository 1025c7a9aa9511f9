"""A simulated node: a driver of `moldau.raft` over a log in memory.

As in the real driver, each input is processed to completion and state is stored before anything is sent.
Responses are matched to requests, and the log is synced some time after it was written, unless the node
crashes first. The invariants are checked after every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.base.ids import DirectoryId
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.protocol.stored.control import VotersRecord
from moldau.raft.raft import Raft
from moldau.raft.types import Append, ElectionState, FollowerAction, OutboundRequest, Truncate
from moldau.raft.voters import DYNAMIC, STATIC, VoterHistory, VoterSet
from tests.harness.worlds.memory_log import Entry, MemoryLog

if TYPE_CHECKING:
    from tests.simulation.quorum.world import World

REQUEST_TIMEOUT_MS = 400.0
_FETCH_VERSION, _VOTE_VERSION, _LATEST = 18, 2, 1
#: A snapshot is fetched in two chunks, so that it can be interrupted.
_SNAPSHOT = b"snapshot" * 2
#: The time of all clocks at the start.
_START = 1000.0


class Records(bytes):
    """Entries in a fetch response: bytes to Raft, which does not look at them."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, entries: tuple[Entry, ...]) -> Records:
        records = cls(len(entries))
        records.entries = entries
        return records


class Machine:
    """A node's log, stored state and clock, and its Raft state machine while it runs."""

    def __init__(self, world: World, node_id: int, directory_id: DirectoryId) -> None:
        self.id = node_id
        self.directory_id = directory_id
        self.log = MemoryLog()
        self.stored = ElectionState()
        self.history = VoterHistory()
        self.raft: Raft | None = None
        self.speed = 1.0
        self.incarnation = 0
        self._world = world
        self._network = world.network
        self._leading_epoch = -1
        self._tick_at: float | None = None
        self._syncing = False
        self._in_flight: dict[int, OutboundRequest] = {}
        self._parked: list[Callable[[], bool]] = []

    def now(self) -> float:
        return _START + self._network.now * self.speed

    def has_on_disk(self, offset: int, entry: Entry) -> bool:
        log = self.log
        if offset < log.start_offset:
            return True
        return offset < log.synced and log.at(offset) == entry

    # Processes.

    def start(self) -> None:
        self.incarnation += 1
        self._leading_epoch, self._syncing, self._tick_at = -1, False, None
        self._in_flight, self._parked = {}, []
        self._world.invariants.restarted(self)
        self.history = self._world.voters_of(self)
        self.raft = self._world.make_raft(self)
        self._process_ready()

    def crash(self, *, keep: int = 0) -> None:
        """Stop, and lose the entries that are not synced, except `keep` of them."""
        self.incarnation += 1
        self.raft = None
        self.log.crash(keep=keep)

    def step(self, apply: Callable[[Raft], Any]) -> Any:
        """Process one input to completion."""
        if self.raft is None:
            return None
        result = apply(self.raft)
        self._process_ready()
        return result

    def later(self, ms: float, apply: Callable[[Raft], Any]) -> None:
        """Process an input some time later, if the process still runs then."""
        incarnation = self.incarnation
        self._network.after(ms, lambda: self.step(apply) if self.incarnation == incarnation else None)

    def _process_ready(self) -> None:
        raft = self.raft
        while raft is not None:
            ready = raft.take_ready()
            if ready.persist is not None:
                self.stored = ready.persist
                self._world.invariants.persisted(self, ready.persist)
            self._write_control(raft, ready.records)
            for outbound in ready.requests:
                self._send(outbound)
            self._world.invariants.check(self, self._world.machines.values())
            if raft.quorum.is_leader and self._leading_epoch != raft.quorum.epoch:
                self._leading_epoch = raft.quorum.epoch
                self._begin_epoch(raft)
            elif not self._retry_parked():
                break
        self._schedule_tick()

    def _begin_epoch(self, raft: Raft) -> None:
        voters = raft.quorum.epoch_start_voters
        begin = [Entry(raft.quorum.epoch, ("leader", self.id))]
        if voters is not None:
            begin += [Entry(raft.quorum.epoch, DYNAMIC), Entry(raft.quorum.epoch, voters)]
        self.write(*begin)

    def _schedule_tick(self) -> None:
        deadline = None if self.raft is None else self.raft.next_deadline()
        if deadline is None or deadline == self._tick_at:
            return
        self._tick_at = deadline
        incarnation = self.incarnation

        def fire() -> None:
            if self.incarnation == incarnation and self._tick_at == deadline:
                self._tick_at = None
                self.step(lambda raft: raft.tick(self.now()))

        self._network.at((deadline - _START) / self.speed + 1e-6, fire)

    # The log.

    def write(self, *entries: Entry) -> None:
        """Append entries, as leader or as follower. Voter sets take effect when they are appended."""
        log, raft = self.log, self.raft
        self._world.invariants.appended(self, log.end_offset, entries)
        for entry in entries:
            log.append((entry,))
            if raft is not None and isinstance(entry.value, VoterSet):
                raft.voters_changed(log.end_offset - 1, None, entry.value)
            elif raft is not None and isinstance(entry.value, int):
                raft.voters_changed(log.end_offset - 1, entry.value, None)
        self._sync_soon()

    def _write_control(self, raft: Raft, records: tuple[Any, ...]) -> None:
        if records:
            values = [
                VoterSet.from_record(each) if isinstance(each, VotersRecord) else each.kraft_version
                for each in records
            ]
            self.write(*(Entry(raft.quorum.epoch, value) for value in values))

    def _sync_soon(self) -> None:
        if self._syncing:
            return
        self._syncing = True
        upto = self.log.end

        def synced(raft: Raft) -> None:
            self._syncing = False
            # Entries that were truncated meanwhile were never synced.
            covered = min(upto.offset, self.log.end_of_epoch(upto.epoch).offset)
            self.log.sync(covered)
            if self.log.synced < self.log.end_offset:
                self._sync_soon()
            raft.appended(self.now(), self.log.synced)

        self.later(self._network.random.random() * self._network.conditions.sync_ms, synced)

    def snapshot(self) -> None:
        """Take a snapshot of the committed entries, or trim the log if there is one already."""
        raft, log = self.raft, self.log
        if raft is None:
            return
        upto = min(raft.quorum.high_watermark, log.end_offset)
        if upto > max([log.start_offset, *(each.offset for each in log.snapshots)]):
            made = log.snapshot(upto)
            voters = (self.history.kraft_version_at(upto - 1), self.history.voters_at(upto - 1))
            self._world.invariants.snapshot(self, made, voters)
        elif log.snapshots and log.snapshots[-1].offset <= log.synced:
            log.trim()
            self.history.discard_before(log.start_offset)

    def _perform(self, action: FollowerAction) -> None:
        if isinstance(action, Append):
            assert isinstance(action.records, Records)
            self.write(*action.records.entries)
        elif isinstance(action, Truncate):
            self._world.invariants.truncating(self, action.end_offset)
            self.log.truncate(action.end_offset)
            self.step(lambda raft: raft.truncated(self.now()))
        elif action.is_last:
            self.log.load(action.snapshot)
            voters = self._world.invariants.snapshots[action.snapshot]
            self.step(lambda raft: raft.snapshot_loaded(self.now(), *voters))
        else:
            self.step(lambda raft: raft.snapshot_chunk_written(self.now()))

    # Messages.

    def _send(self, outbound: OutboundRequest) -> None:
        number = self._world.number()
        self._in_flight[number] = outbound
        target = self._world.find(outbound)
        if target is not None:
            self._network.deliver(self.id, target.id, lambda: target.receive(self, number, outbound.request))
        incarnation = self.incarnation

        def time_out() -> None:
            if self.incarnation == incarnation and self._in_flight.pop(number, None) is not None:
                self.step(lambda raft: raft.on_failure(outbound, self.now()))

        self._network.after(REQUEST_TIMEOUT_MS + getattr(outbound.request, "max_wait_ms", 0), time_out)

    def receive(self, sender: Machine, number: int, request: Message) -> None:
        """Handle a request of another node."""
        if self.raft is None:
            return
        if isinstance(request, FetchRequest):
            self._receive_fetch(sender, number, request)
        else:
            self._respond(sender, number, self.step(lambda raft: _response_to(raft, request, self.now())))

    def _respond(self, sender: Machine, number: int, response: Message) -> None:
        incarnation = sender.incarnation

        def arrive() -> None:
            outbound = sender._in_flight.pop(number, None) if sender.incarnation == incarnation else None
            if outbound is not None:
                action = sender.step(lambda raft: raft.on_response(outbound, response, sender.now()))
                if action is not None:
                    sender._perform(action)

        self._network.deliver(self.id, sender.id, arrive)

    def _receive_fetch(self, sender: Machine, number: int, request: FetchRequest) -> None:
        until = self.now() + request.max_wait_ms

        def respond() -> bool:
            raft = self.raft
            if raft is None:
                return True
            found = raft.fetch(request, _FETCH_VERSION, self.now())
            if found.wait and self.now() < until:
                return False
            if found.read_from is not None:
                records = self.log.read(found.read_from, self._network.random.randint(1, 8))
                found.response.responses[0].partitions[0].records = Records.of(records)
            self._respond(sender, number, found.response)
            return True

        if not self.step(lambda raft: respond()):
            self._parked.append(respond)
            self.later(request.max_wait_ms / self.speed + 1e-6, lambda raft: None)

    def _retry_parked(self) -> bool:
        """Retry waiting fetches; return whether any got a response."""
        parked, self._parked = self._parked, []
        self._parked += [respond for respond in parked if not respond()]
        return len(self._parked) < len(parked)


def _response_to(raft: Raft, request: Message, now_ms: float) -> Message:
    if isinstance(request, VoteRequest):
        return raft.step(request, _VOTE_VERSION, now_ms)
    if isinstance(request, BeginQuorumEpochRequest | EndQuorumEpochRequest | UpdateRaftVoterRequest):
        return raft.step(request, _LATEST, now_ms)
    if isinstance(request, ApiVersionsRequest):
        supported = SupportedFeatureKey(name="kraft.version", min_version=STATIC, max_version=DYNAMIC)
        return ApiVersionsResponse(supported_features=[supported])
    if isinstance(request, FetchSnapshotRequest):
        response, readable = raft.fetch_snapshot(request, _LATEST, now_ms)
        if readable:
            partition, position = response.topics[0].partitions[0], request.topics[0].partitions[0].position
            partition.size, partition.position = len(_SNAPSHOT), position
            partition.unaligned_records = memoryview(_SNAPSHOT[position : position + 8])
        return response
    raise AssertionError(f"{type(request).__name__} is not a Raft request")
