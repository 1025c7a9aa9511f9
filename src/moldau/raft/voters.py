"""The voter set of the metadata quorum and its history in the log.

A static quorum (`kraft.version` 0) takes its voters from `controller.quorum.voters`. A dynamic quorum
(`kraft.version` 1, KIP-853) stores them in the log as control records and identifies each voter by its node
id and the id of the directory that holds its log.

A VotersRecord takes effect when it is appended, before it is committed. Truncating the log therefore reverts
the voter set, and a snapshot must contain the voter set at its own end offset, not the latest one.

The voter set of a snapshot takes effect at the offset before the snapshot's end. The bootstrap snapshot
written by `format` ends at offset 0, so its voter set has the offset -1; a leader that finds it there writes
it into the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.protocol.stored.control import Endpoint, KRaftVersionFeature, VotersRecord
from moldau.protocol.stored.control import Voter as StoredVoter

T = TypeVar("T")

#: The feature whose level distinguishes static from dynamic quorums.
KRAFT_VERSION = "kraft.version"
STATIC = 0
DYNAMIC = 1


class VoterEndpoint(NamedTuple):
    """A listener of a controller."""

    name: str
    host: str
    port: int


def endpoint_named(endpoints: Iterable[VoterEndpoint], listener: str) -> VoterEndpoint | None:
    return next((endpoint for endpoint in endpoints if endpoint.name == listener), None)


class Voter(NamedTuple):
    id: int
    #: Zero in a static quorum.
    directory_id: DirectoryId = ZERO_UUID
    endpoints: tuple[VoterEndpoint, ...] = ()
    min_kraft_version: int = STATIC
    max_kraft_version: int = DYNAMIC

    def is_replica(self, node_id: int, directory_id: DirectoryId) -> bool:
        """Whether this voter is the given replica; a voter without a directory id matches any directory."""
        return self.id == node_id and self.directory_id in (ZERO_UUID, directory_id)

    def supports(self, kraft_version: int) -> bool:
        return self.min_kraft_version <= kraft_version <= self.max_kraft_version


@dataclass(frozen=True, slots=True)
class VoterSet:
    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        return cls(tuple(sorted(voters)))

    @property
    def ids(self) -> list[int]:
        return [voter.id for voter in self.voters]

    def get(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.id == node_id), None)

    def has(self, node_id: int, directory_id: DirectoryId) -> bool:
        voter = self.get(node_id)
        return voter is not None and voter.is_replica(node_id, directory_id)

    def endpoint(self, node_id: int, listener: str) -> VoterEndpoint | None:
        return endpoint_named(self.endpoints(node_id), listener)

    def endpoints(self, node_id: int) -> tuple[VoterEndpoint, ...]:
        voter = self.get(node_id)
        return () if voter is None else voter.endpoints

    def with_voter(self, changed: Voter) -> VoterSet:
        """Return the set with a voter's endpoints and supported versions replaced."""
        return VoterSet.of(changed if voter.id == changed.id else voter for voter in self.voters)

    def adding(self, voter: Voter) -> VoterSet:
        return VoterSet.of([*self.voters, voter])

    def removing(self, node_id: int) -> VoterSet:
        return VoterSet.of(voter for voter in self.voters if voter.id != node_id)

    def to_record(self) -> VotersRecord:
        return VotersRecord(version=0, voters=[_voter_to_record(voter) for voter in self.voters])

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls.of(_voter_from_record(voter) for voter in record.voters)


@dataclass(slots=True)
class _OffsetHistory(Generic[T]):
    """Values by the offset from which each is in effect, in order."""

    entries: list[tuple[int, T]] = field(default_factory=list)

    def add(self, offset: int, value: T) -> None:
        self.truncate(offset)
        self.entries.append((offset, value))

    def at(self, offset: int) -> T | None:
        return next((value for start, value in reversed(self.entries) if start <= offset), None)

    def truncate(self, end_offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry[0] < end_offset]

    def discard_before(self, start_offset: int) -> None:
        older = [entry for entry in self.entries if entry[0] <= start_offset]
        self.entries = older[-1:] + [entry for entry in self.entries if entry[0] > start_offset]


class VoterHistory:
    """The voter sets and `kraft.version` levels by the offset of their records.

    `static` is the voter set of the configuration, with endpoints; it is empty in a dynamic quorum.
    """

    def __init__(self, static: VoterSet | None = None) -> None:
        self.static = static if static is not None else VoterSet()
        self._voters: _OffsetHistory[VoterSet] = _OffsetHistory()
        self._versions: _OffsetHistory[int] = _OffsetHistory()

    @property
    def voters(self) -> VoterSet:
        """The latest voter set, committed or not."""
        return self._voters.entries[-1][1] if self._voters.entries else self.static

    @property
    def previous_voters(self) -> VoterSet:
        """The voter set before the latest change."""
        return self._voters.entries[-2][1] if len(self._voters.entries) > 1 else self.static

    @property
    def kraft_version(self) -> int:
        return self._versions.entries[-1][1] if self._versions.entries else STATIC

    @property
    def voters_offset(self) -> int | None:
        """The offset of the latest voter set; None if it is that of the configuration."""
        return self._voters.entries[-1][0] if self._voters.entries else None

    def add(self, offset: int, *, kraft_version: int | None = None, voters: VoterSet | None = None) -> None:
        if kraft_version is not None:
            self._versions.add(offset, kraft_version)
        if voters is not None:
            self._voters.add(offset, voters)

    def voters_at(self, offset: int) -> VoterSet:
        """Return the voter set in effect at `offset`, the last offset that a snapshot contains."""
        found = self._voters.at(offset)
        return self.static if found is None else found

    def kraft_version_at(self, offset: int) -> int:
        found = self._versions.at(offset)
        return STATIC if found is None else found

    def truncate(self, end_offset: int) -> None:
        """Revert to the state at a new log end offset."""
        self._voters.truncate(end_offset)
        self._versions.truncate(end_offset)

    def discard_before(self, start_offset: int) -> None:
        """Drop entries that a snapshot with this end offset supersedes."""
        self._voters.discard_before(start_offset)
        self._versions.discard_before(start_offset)

    def clear(self) -> None:
        self._voters.entries.clear()
        self._versions.entries.clear()


def _voter_to_record(voter: Voter) -> StoredVoter:
    return StoredVoter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[Endpoint(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=voter.min_kraft_version, max_supported_version=voter.max_kraft_version
        ),
    )


def _voter_from_record(voter: StoredVoter) -> Voter:
    return Voter(
        voter.voter_id,
        voter.voter_directory_id,
        tuple(VoterEndpoint(e.name, e.host, e.port) for e in voter.endpoints),
        voter.kraft_version_feature.min_supported_version,
        voter.kraft_version_feature.max_supported_version,
    )
