"""One node of a quorum around the pure rules: what their driver is to be, over a log in memory.

One input after the other is run to its end; what must be remembered is written before anything is sent;
answers are matched to questions; the log is synced some time after it was written, unless the machine crashes
first. After every step the rules are looked at (`quorum_rules`).
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
    from tests.simulation.quorum_world import World

REQUEST_TIMEOUT_MS = 400.0
_FETCH_VERSION, _VOTE_VERSION, _LATEST = 18, 2, 1
#: A snapshot travels in two parts, so that it can be interrupted.
_SNAPSHOT = b"snapshot" * 2
#: What the clocks show when the world begins.
_BEGINNING = 1000.0


class Records(bytes):
    """Entries on their way: bytes to the rules, which do not look inside."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, entries: tuple[Entry, ...]) -> Records:
        records = cls(len(entries))
        records.entries = entries
        return records


class Machine:
    """A node's log, what it remembers, its clock, and while it is up the rules."""

    def __init__(self, world: World, node_id: int, directory_id: DirectoryId) -> None:
        self.id = node_id
        self.directory_id = directory_id
        self.log = MemoryLog()
        self.stored = ElectionState()
        self.history = VoterHistory()
        self.raft: Raft | None = None
        self.speed = 1.0
        self.life = 0
        self._world = world
        self._soup = world.soup
        self._leading_epoch = -1
        self._tick_at: float | None = None
        self._syncing = False
        self._asked: dict[int, OutboundRequest] = {}
        self._parked: list[Callable[[], bool]] = []

    def now(self) -> float:
        return _BEGINNING + self._soup.now * self.speed

    def has_on_disk(self, offset: int, entry: Entry) -> bool:
        log = self.log
        if offset < log.start_offset:
            return True
        return offset < log.synced and log.at(offset) == entry

    # Life.

    def start(self) -> None:
        self.life += 1
        self._leading_epoch, self._syncing, self._tick_at = -1, False, None
        self._asked, self._parked = {}, []
        self._world.rules.restarted(self)
        self.history = self._world.voters_of(self)
        self.raft = self._world.make_raft(self)
        self._settle()

    def crash(self, *, keep: int = 0) -> None:
        """Gone; `keep` is how many entries that were not synced are on disk by luck."""
        self.life += 1
        self.raft = None
        self.log.crash(keep=keep)

    def do(self, step: Callable[[Raft], Any]) -> Any:
        """One input, to its end."""
        if self.raft is None:
            return None
        result = step(self.raft)
        self._settle()
        return result

    def later(self, ms: float, step: Callable[[Raft], Any]) -> None:
        """An input some time later, if this process still lives then."""
        life = self.life
        self._soup.later(ms, lambda: self.do(step) if self.life == life else None)

    def _settle(self) -> None:
        raft = self.raft
        while raft is not None:
            ready = raft.take_ready()
            if ready.persist is not None:
                self.stored = ready.persist
                self._world.rules.persisted(self, ready.persist)
            self._write_control(raft, ready.records)
            for outgoing in ready.requests:
                self._ask(outgoing)
            self._world.rules.look(self, self._world.machines.values())
            if raft.quorum.is_leader and self._leading_epoch != raft.quorum.epoch:
                self._leading_epoch = raft.quorum.epoch
                self._begin_epoch(raft)
            elif not self._look_at_parked():
                break
        self._schedule_tick()

    def _begin_epoch(self, raft: Raft) -> None:
        voters = raft.quorum.epoch_start_voters
        begin = [Entry(raft.quorum.epoch, ("leads", self.id))]
        if voters is not None:
            begin += [Entry(raft.quorum.epoch, DYNAMIC), Entry(raft.quorum.epoch, voters)]
        self.write(*begin)

    def _schedule_tick(self) -> None:
        deadline = None if self.raft is None else self.raft.next_deadline()
        if deadline is None or deadline == self._tick_at:
            return
        self._tick_at = deadline
        life = self.life

        def come() -> None:
            if self.life == life and self._tick_at == deadline:
                self._tick_at = None
                self.do(lambda raft: raft.tick(self.now()))

        self._soup.at((deadline - _BEGINNING) / self.speed + 1e-6, come)

    # The log.

    def write(self, *entries: Entry) -> None:
        """As the leader, or as a follower what the leader sent. Voters count as soon as they are written."""
        log, raft = self.log, self.raft
        self._world.rules.wrote(self, log.end_offset, entries)
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
            # What was cut off meanwhile was never synced.
            covered = min(upto.offset, self.log.end_of_epoch(upto.epoch).offset)
            self.log.sync(covered)
            if self.log.synced < self.log.end_offset:
                self._sync_soon()
            raft.appended(self.now(), self.log.synced)

        self.later(self._soup.random.random() * self._soup.weather.sync_ms, synced)

    def snapshot(self) -> None:
        """Of what is committed; then the log before it may go."""
        raft, log = self.raft, self.log
        if raft is None:
            return
        upto = min(raft.quorum.high_watermark, log.end_offset)
        if upto > max([log.start_offset, *(each.offset for each in log.snapshots)]):
            made = log.snapshot(upto)
            said = (self.history.kraft_version_at(upto - 1), self.history.voters_at(upto - 1))
            self._world.rules.snapshot(self, made, said)
        elif log.snapshots and log.snapshots[-1].offset <= log.synced:
            log.trim()
            self.history.discard_before(log.start_offset)

    def _follow(self, work: FollowerAction) -> None:
        if isinstance(work, Append):
            assert isinstance(work.records, Records)
            self.write(*work.records.entries)
        elif isinstance(work, Truncate):
            self._world.rules.truncates(self, work.end_offset)
            self.log.truncate(work.end_offset)
            self.do(lambda raft: raft.truncated(self.now()))
        elif work.is_last:
            self.log.load(work.snapshot)
            said = self._world.rules.snapshots[work.snapshot]
            self.do(lambda raft: raft.snapshot_loaded(self.now(), *said))
        else:
            self.do(lambda raft: raft.snapshot_chunk_written(self.now()))

    # Messages.

    def _ask(self, outgoing: OutboundRequest) -> None:
        number = self._world.number()
        self._asked[number] = outgoing
        target = self._world.find(outgoing)
        if target is not None:
            self._soup.carry(self.id, target.id, lambda: target.hear(self, number, outgoing.request))
        life = self.life

        def give_up() -> None:
            if self.life == life and self._asked.pop(number, None) is not None:
                self.do(lambda raft: raft.on_failure(outgoing, self.now()))

        self._soup.later(REQUEST_TIMEOUT_MS + getattr(outgoing.request, "max_wait_ms", 0), give_up)

    def hear(self, asker: Machine, number: int, request: Message) -> None:
        """A request of another machine."""
        if self.raft is None:
            return
        if isinstance(request, FetchRequest):
            self._hear_fetch(asker, number, request)
        else:
            self._answer(asker, number, self.do(lambda raft: _answer_of(raft, request, self.now())))

    def _answer(self, asker: Machine, number: int, response: Message) -> None:
        life = asker.life

        def arrive() -> None:
            outgoing = asker._asked.pop(number, None) if asker.life == life else None
            if outgoing is not None:
                work = asker.do(lambda raft: raft.on_response(outgoing, response, asker.now()))
                if work is not None:
                    asker._follow(work)

        self._soup.carry(self.id, asker.id, arrive)

    def _hear_fetch(self, asker: Machine, number: int, request: FetchRequest) -> None:
        until = self.now() + request.max_wait_ms

        def answer() -> bool:
            raft = self.raft
            if raft is None:
                return True
            found = raft.fetch(request, _FETCH_VERSION, self.now())
            if found.wait and self.now() < until:
                return False
            if found.read_from is not None:
                records = self.log.read(found.read_from, self._soup.random.randint(1, 8))
                found.response.responses[0].partitions[0].records = Records.of(records)
            self._answer(asker, number, found.response)
            return True

        if not self.do(lambda raft: answer()):
            self._parked.append(answer)
            self.later(request.max_wait_ms / self.speed + 1e-6, lambda raft: None)

    def _look_at_parked(self) -> bool:
        """Whether any of those who wait got an answer."""
        parked, self._parked = self._parked, []
        self._parked += [answer for answer in parked if not answer()]
        return len(self._parked) < len(parked)


def _answer_of(raft: Raft, request: Message, now_ms: float) -> Message:
    if isinstance(request, VoteRequest):
        return raft.step(request, _VOTE_VERSION, now_ms)
    if isinstance(request, BeginQuorumEpochRequest):
        return raft.step(request, _LATEST, now_ms)
    if isinstance(request, EndQuorumEpochRequest):
        return raft.step(request, _LATEST, now_ms)
    if isinstance(request, ApiVersionsRequest):
        supported = SupportedFeatureKey(name="kraft.version", min_version=STATIC, max_version=DYNAMIC)
        return ApiVersionsResponse(supported_features=[supported])
    if isinstance(request, UpdateRaftVoterRequest):
        return raft.step(request, 1, now_ms)
    if isinstance(request, FetchSnapshotRequest):
        response, readable = raft.fetch_snapshot(request, _LATEST, now_ms)
        if readable:
            partition, position = response.topics[0].partitions[0], request.topics[0].partitions[0].position
            partition.size, partition.position = len(_SNAPSHOT), position
            partition.unaligned_records = memoryview(_SNAPSHOT[position : position + 8])
        return response
    raise AssertionError(f"nobody answers {request}")
