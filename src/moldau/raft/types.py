"""The small words the quorum's rules are written in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.protocol.schema import Buffer, Message
from moldau.raft.voters import VoterEndpoint

#: No node.
NOBODY = -1


class ReplicaKey(NamedTuple):
    """Who keeps a copy of the log: a node and, in a dynamic quorum, the directory it lies in."""

    id: int
    directory_id: DirectoryId = ZERO_UUID


class OffsetAndEpoch(NamedTuple):
    """An end of a log or of a snapshot: the first offset that is not in it, the epoch of the last record."""

    offset: int
    epoch: int


class Role(Enum):
    """`RESIGNED`: led until now, and waits for somebody else. Whoever does not vote is an unattached node or
    a follower, and never anything else."""

    UNATTACHED = auto()
    PROSPECTIVE = auto()
    CANDIDATE = auto()
    LEADER = auto()
    FOLLOWER = auto()
    RESIGNED = auto()


@dataclass(frozen=True, slots=True)
class Election:
    """What a node must remember over a restart, lest it votes twice (the file `quorum-state`)."""

    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: DirectoryId = ZERO_UUID


class LogView(Protocol):
    """What the rules must know of the log, from memory. Everything appended counts, synced or not."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log ends; of an empty log the latest snapshot, or (0, 0)."""
        ...

    @property
    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Complete snapshots, oldest first."""
        ...

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the largest epoch that is not above `epoch` ends; that epoch and that offset."""
        ...


class Outgoing(NamedTuple):
    """A request to send. `id` is negative for a bootstrap server whose id is not known."""

    id: int
    endpoint: VoterEndpoint
    request: Message


class Append(NamedTuple):
    """What a leader sent: append it, bring it to disk, then tell the rules."""

    records: Buffer
    leader_epoch: int


class Truncate(NamedTuple):
    """The log differs from the leader's from here on."""

    end: OffsetAndEpoch


class LoadSnapshot(NamedTuple):
    """What comes next was removed from the leader's log: begin anew from this snapshot."""

    snapshot: OffsetAndEpoch


FollowerWork = Append | Truncate | LoadSnapshot
