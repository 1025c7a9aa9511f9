"""Who votes in the metadata quorum.

A static quorum (`kraft.version` 0) is listed in the configuration; a dynamic one (1) is itself part of the
log, as a control record, and knows each voter by its id and the id of the directory its log lives in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.protocol.stored.control import Endpoint, KRaftVersionFeature, VotersRecord
from moldau.protocol.stored.control import Voter as StoredVoter

#: The feature whose level says which of the two a quorum is.
KRAFT_VERSION = "kraft.version"
STATIC = 0
DYNAMIC = 1


class VoterEndpoint(NamedTuple):
    """Where a controller listens."""

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
        """A voter whose directory is not known is that node, wherever its log lies."""
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
        """The same set after a voter told where it listens now."""
        return VoterSet.of(changed if voter.id == changed.id else voter for voter in self.voters)

    def adding(self, voter: Voter) -> VoterSet:
        return VoterSet.of([*self.voters, voter])

    def removing(self, node_id: int) -> VoterSet:
        return VoterSet.of(voter for voter in self.voters if voter.id != node_id)

    def to_record(self) -> VotersRecord:
        return VotersRecord(version=0, voters=[_stored(voter) for voter in self.voters])

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls.of(_loaded(voter) for voter in record.voters)


def _stored(voter: Voter) -> StoredVoter:
    return StoredVoter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[Endpoint(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=voter.min_kraft_version, max_supported_version=voter.max_kraft_version
        ),
    )


def _loaded(voter: StoredVoter) -> Voter:
    return Voter(
        voter.voter_id,
        voter.voter_directory_id,
        tuple(VoterEndpoint(e.name, e.host, e.port) for e in voter.endpoints),
        voter.kraft_version_feature.min_supported_version,
        voter.kraft_version_feature.max_supported_version,
    )
