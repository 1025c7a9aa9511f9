"""The invariants of Raft, checked after every step. A violation names the invariant and the nodes.

- *election safety*: at most one leader per epoch
- *one vote per epoch* for each node; *epochs never decrease*
- *log matching*: entries of the same epoch at the same offset are equal, and so are those before them
- *committed on a majority*: when a high watermark advances, a majority of voters has the records before it on
  disk
- *state machine safety*: all logs agree below the high watermark
- *the high watermark never decreases* while a process runs
- *snapshots of equal offsets agree*
- *leader completeness*: a new leader has every committed record
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moldau.raft.types import NO_VOTE, ElectionState, OffsetAndEpoch, ReplicaKey
from moldau.raft.voters import VoterSet
from tests.harness.worlds.memory_log import Entry

if TYPE_CHECKING:
    from tests.simulation.quorum.machine import Machine


class Invariants:
    def __init__(self) -> None:
        self.committed: list[Entry] = []
        self.leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], ReplicaKey] = {}
        self._epochs: dict[int, int] = {}
        #: By offset and epoch: the value of the entry, and the epoch of the one before.
        self._written: dict[tuple[int, int], tuple[Any, int]] = {}
        self._high_watermarks: dict[int, int] = {}
        #: The `kraft.version` and voter set in each snapshot.
        self.snapshots: dict[OffsetAndEpoch, tuple[int, VoterSet]] = {}

    @property
    def last_epoch(self) -> int:
        """The latest epoch with a leader."""
        return max(self.leaders, default=-1)

    def persisted(self, machine: Machine, election: ElectionState) -> None:
        before = self._epochs.get(machine.id, 0)
        assert election.leader_epoch >= before, (
            f"epochs never decrease: node {machine.id} from {before} to {election.leader_epoch}"
        )
        self._epochs[machine.id] = election.leader_epoch
        if election.voted_id != NO_VOTE:
            vote = ReplicaKey(election.voted_id, election.voted_directory_id)
            first = self._votes.setdefault((machine.id, election.leader_epoch), vote)
            assert first == vote, (
                f"one vote per epoch: node {machine.id} for {first.id} and {vote.id} in epoch"
                f" {election.leader_epoch}"
            )

    def appended(self, machine: Machine, offset: int, entries: Iterable[Entry]) -> None:
        log = machine.log
        before = log.at(offset - 1).epoch if offset > log.start_offset else log.end_of_epoch(1 << 31).epoch
        for entry in entries:
            assert entry.epoch >= before, f"epochs never decrease in a log: node {machine.id} at {offset}"
            first = self._written.setdefault((offset, entry.epoch), (entry.value, before))
            assert first == (entry.value, before), (
                f"log matching: node {machine.id} at {offset}, {first}, {entry}"
            )
            offset, before = offset + 1, entry.epoch

    def truncating(self, machine: Machine, end_offset: int) -> None:
        before = self._high_watermarks.get(machine.id, -1)
        assert end_offset >= before, (
            f"state machine safety: node {machine.id} with high watermark {before} truncates to {end_offset}"
        )

    def snapshot(self, machine: Machine, end: OffsetAndEpoch, voters: tuple[int, VoterSet]) -> None:
        assert self.snapshots.setdefault(end, voters) == voters, (
            f"snapshots of equal offsets agree: node {machine.id} at {end}"
        )

    def restarted(self, machine: Machine) -> None:
        self._high_watermarks.pop(machine.id, None)

    def check(self, machine: Machine, machines: Iterable[Machine]) -> None:
        """Check the invariants after a step of this node."""
        raft = machine.raft
        if raft is None:
            return
        if raft.quorum.is_leader:
            leader = self.leaders.get(raft.quorum.epoch)
            if leader is None:
                self._check_new_leader(machine)
            assert self.leaders.setdefault(raft.quorum.epoch, machine.id) == machine.id, (
                f"election safety: {leader} and {machine.id} lead epoch {raft.quorum.epoch}"
            )
        self._check_high_watermark(machine, raft.quorum.high_watermark, machines)

    def _check_new_leader(self, machine: Machine) -> None:
        log = machine.log
        assert log.end_offset >= len(self.committed), (
            f"leader completeness: the log of node {machine.id} ends at {log.end_offset}"
            f" of {len(self.committed)}"
        )
        for offset in range(log.start_offset, len(self.committed)):
            assert log.at(offset) == self.committed[offset], (
                f"leader completeness: the log of node {machine.id} differs at {offset}"
            )

    def _check_high_watermark(
        self, machine: Machine, high_watermark: int, machines: Iterable[Machine]
    ) -> None:
        before = self._high_watermarks.get(machine.id, -1)
        if high_watermark in (before, -1):
            # A new leader does not know it before it commits a record of its epoch.
            return
        assert high_watermark > before, (
            f"the high watermark never decreases: node {machine.id} from {before} to {high_watermark}"
        )
        self._high_watermarks[machine.id] = high_watermark
        log = machine.log
        if high_watermark > len(self.committed):
            assert high_watermark <= log.end_offset, f"node {machine.id} commits records it does not have"
            self._check_majority(machine, high_watermark, machines)
        for offset in range(max(before, log.start_offset, 0), high_watermark):
            if offset >= log.end_offset:
                break
            entry = log.at(offset)
            if offset == len(self.committed):
                self.committed.append(entry)
            assert self.committed[offset] == entry, (
                f"state machine safety: node {machine.id} at {offset}, {entry} and {self.committed[offset]}"
            )

    def _check_majority(self, machine: Machine, upto: int, machines: Iterable[Machine]) -> None:
        raft = machine.raft
        if raft is None:
            return
        entry = machine.log.at(upto - 1)
        voters = raft.quorum.voters.ids
        have = [each.id for each in machines if each.id in voters and each.has_on_disk(upto - 1, entry)]
        assert len(have) > len(voters) // 2, (
            f"committed on a majority: {upto} in epoch {raft.quorum.epoch} is on {have} of {voters}"
        )
