"""Changes of a quorum's voters, one at a time, decided by its leader.

A change is a VotersRecord, and counts as soon as it is appended. It is begun only when the last one is
committed, and when the leader has committed something in its own epoch: else two leaders could each reach a
majority of different sets. Whoever is added must have caught up, and is asked first which versions it knows.

A static quorum cannot change. But its voters tell the leader their directories and endpoints, so that it can
become a dynamic one (`kraft.version` 1): then the leader writes them down.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.protocol.messages.add_raft_voter import AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.raft.core import Core
from moldau.raft.leader import Leader
from moldau.raft.types import Outgoing, ReplicaKey
from moldau.raft.voters import DYNAMIC, KRAFT_VERSION, STATIC, Voter, VoterSet

Answer = AddRaftVoterResponse | RemoveRaftVoterResponse
Refusal = tuple[ErrorCode, str]


@dataclass(slots=True)
class Change:
    deadline: float
    #: Who is added; None: somebody is removed.
    added: Voter | None
    ack_when_committed: bool = True
    is_answered: bool = False
    #: The new voters, once they are known, and the offset of their record.
    voters: VoterSet | None = None
    offset: int | None = None

    def answer(self, error: ErrorCode, message: str | None) -> Answer:
        if self.added is not None:
            return AddRaftVoterResponse(error_code=error, error_message=message)
        return RemoveRaftVoterResponse(error_code=error, error_message=message)


@dataclass(slots=True)
class _Term:
    """What is under way while one leader leads."""

    leader: Leader
    #: The voters of a static quorum as they told; None: they are being written down.
    told_voters: VoterSet | None
    change: Change | None = None
    records: list[VotersRecord | KRaftVersionRecord] = field(default_factory=list)
    wants_to_resign: bool = False


class VoterChanges:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._term: _Term | None = None
        self._answer: Answer | None = None

    # What is so.

    @property
    def term(self) -> _Term | None:
        """Of the leader this node is now. With a leader, what was under way ends."""
        leader = self._core.state
        if self._term is not None and self._term.leader is not leader:
            self._end(self._term, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
            self._term = None
        if self._term is None and isinstance(leader, Leader):
            static = self._core.history.kraft_version == STATIC
            told = self._core.voters.with_voter(self._core.settings.local_voter) if static else None
            self._term = _Term(leader, told)
        return self._term

    @property
    def deadline(self) -> float | None:
        term = self.term
        return None if term is None or term.change is None else term.change.deadline

    @property
    def wants_to_resign(self) -> bool:
        """The leader has removed itself, and that is committed."""
        term = self.term
        return term is not None and term.wants_to_resign

    def needs_update(self, voter: Voter) -> bool:
        """Whether the voters know this one differently."""
        known = self._core.voters.get(voter.id)
        return (
            known is not None
            and known.is_replica(voter.id, voter.directory_id)
            and known._replace(endpoints=tuple(sorted(known.endpoints)))
            != voter._replace(endpoints=tuple(sorted(voter.endpoints)))
        )

    def take(self) -> tuple[tuple[VotersRecord | KRaftVersionRecord, ...], Answer | None]:
        """Control records to append, and the answer to whoever asked for a change."""
        term = self.term
        records = () if term is None else tuple(term.records)
        if term is not None:
            term.records.clear()
        answer, self._answer = self._answer, None
        return records, answer

    # A change, from its beginning to its end.

    def refusal(self, now_ms: float) -> Refusal | None:
        """Why no change can begin now."""
        term, history = self.term, self._core.history
        if term is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum"
        self.expire(now_ms)
        if term.change is not None:
            return ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way"
        if term.leader.high_watermark < 0:
            return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything in its epoch yet"
        if history.kraft_version != DYNAMIC:
            message = f"the voters of a quorum with {KRAFT_VERSION} {history.kraft_version} cannot change"
            return ErrorCode.UNSUPPORTED_VERSION, message
        if not self.is_last_change_committed:
            return ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet"
        return None

    @property
    def is_last_change_committed(self) -> bool:
        term, offset = self.term, self._core.history.voters_offset
        return term is not None and offset is not None and offset < term.leader.high_watermark

    def add(self, voter: Voter, *, ack_when_committed: bool, now_ms: float) -> Refusal | None:
        """None: under way; the new voter is asked for its versions."""
        refusal = self.refusal(now_ms)
        term = self.term
        if refusal is not None or term is None:
            return refusal
        if self._core.voters.get(voter.id) is not None:
            return ErrorCode.DUPLICATE_VOTER, f"a voter with the id {voter.id} is there already"
        endpoint = self._core.named(voter.endpoints)
        if endpoint is None or not self._core.connections.send(
            Outgoing(voter.id, endpoint, ApiVersionsRequest()), now_ms
        ):
            return ErrorCode.REQUEST_TIMED_OUT, f"node {voter.id} cannot be asked for its versions now"
        term.change = Change(now_ms + self._core.settings.request_timeout_ms, voter, ack_when_committed)
        return None

    def remove(self, key: ReplicaKey, now_ms: float) -> Refusal | None:
        refusal = self.refusal(now_ms)
        term, voters = self.term, self._core.voters
        if refusal is not None or term is None:
            return refusal
        known = voters.get(key.id)
        if known is None or known.directory_id != key.directory_id or len(voters.voters) == 1:
            return ErrorCode.VOTER_NOT_FOUND, f"node {key.id} cannot be removed from the voters {voters.ids}"
        change = Change(now_ms + self._core.settings.request_timeout_ms, None)
        change.voters = voters.removing(key.id)
        term.change = change
        term.records.append(change.voters.to_record())
        return None

    def versions_told(self, voter_id: int, response: ApiVersionsResponse | None, now_ms: float) -> bool:
        """The node to be added answered, or did not."""
        term = self.term
        change = None if term is None else term.change
        if term is None or change is None or change.added is None or change.added.id != voter_id:
            return True
        if change.voters is not None:
            return True
        if response is None or response.error_code != ErrorCode.NONE:
            self._end(term, ErrorCode.REQUEST_TIMED_OUT, f"node {voter_id} did not tell its versions")
            return False
        versions = next((each for each in response.supported_features if each.name == KRAFT_VERSION), None)
        minimum, maximum = (
            (STATIC, STATIC) if versions is None else (versions.min_version, versions.max_version)
        )
        added = change.added._replace(min_kraft_version=minimum, max_kraft_version=maximum)
        if not added.supports(self._core.history.kraft_version):
            message = f"node {voter_id} knows {KRAFT_VERSION} {minimum} to {maximum} only"
            self._end(term, ErrorCode.INVALID_REQUEST, message)
        elif not term.leader.is_caught_up(ReplicaKey(added.id, added.directory_id), now_ms):
            self._end(term, ErrorCode.REQUEST_TIMED_OUT, f"node {voter_id} has not caught up")
        else:
            self._add_now(term, change, added)
        return True

    def _add_now(self, term: _Term, change: Change, added: Voter) -> None:
        change.voters = self._core.voters.adding(added)
        term.records.append(change.voters.to_record())
        if not change.ack_when_committed:
            change.is_answered = True
            self._answer = change.answer(ErrorCode.NONE, None)

    def appended(self, offset: int, voters: VoterSet) -> None:
        term = self.term
        if term is None:
            return
        term.leader.change_voters(voters)
        if term.change is not None and term.change.voters == voters:
            term.change.offset = offset

    def committed(self, leader: Leader) -> None:
        """The leader's high watermark has risen."""
        self._core.commit_to(leader.high_watermark)
        term = self.term
        if term is None:
            return
        change = term.change
        if change is not None and change.offset is not None and leader.high_watermark > change.offset:
            self._end(term, ErrorCode.NONE, None)
        if self.is_last_change_committed and not self._core.is_voter:
            term.wants_to_resign = True

    def expire(self, now_ms: float) -> None:
        term = self.term
        if term is not None and term.change is not None and now_ms >= term.change.deadline:
            self._end(term, ErrorCode.REQUEST_TIMED_OUT, None)

    def _end(self, term: _Term, error: ErrorCode, message: str | None) -> None:
        change, term.change = term.change, None
        if change is not None and not change.is_answered:
            self._answer = change.answer(error, message)

    # A voter that tells what it is, and the way from a static quorum to a dynamic one.

    def update(self, voter: Voter, now_ms: float) -> ErrorCode:
        term, version = self.term, self._core.history.kraft_version
        self.expire(now_ms)
        if term is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if term.change is not None or term.leader.high_watermark < 0:
            return ErrorCode.REQUEST_TIMED_OUT
        voters = self._core.voters if version == DYNAMIC else term.told_voters
        if voters is None or (version == DYNAMIC and not self.is_last_change_committed):
            return ErrorCode.REQUEST_TIMED_OUT
        if not voter.supports(version) or self._core.named(voter.endpoints) is None:
            return ErrorCode.INVALID_REQUEST
        known = voters.get(voter.id)
        if known is None or (version == DYNAMIC and not known.is_replica(voter.id, voter.directory_id)):
            return ErrorCode.VOTER_NOT_FOUND
        updated = voters.with_voter(voter)
        if version == DYNAMIC:
            term.records.append(updated.to_record())
        else:
            term.told_voters = updated
        term.leader.heard_from(ReplicaKey(voter.id, voter.directory_id), now_ms)
        return ErrorCode.NONE

    def upgrade(self, version: int, *, validate_only: bool) -> None:
        """`kraft.version` can only rise; KafkaError says why not."""
        term, current = self.term, self._core.history.kraft_version
        if term is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node does not lead the quorum.")
        if version == current or (version == DYNAMIC and current == STATIC and term.told_voters is None):
            return
        if version != DYNAMIC or term.told_voters is None:
            message = f"{KRAFT_VERSION} {current} cannot become {version}."
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
        silent = [
            voter.id
            for voter in term.told_voters.voters
            if not voter.supports(version) or voter.directory_id == ZERO_UUID
        ]
        if silent:
            message = f"The voters {silent} do not know {KRAFT_VERSION} {version}, or have not said so yet."
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
        if not validate_only:
            record = KRaftVersionRecord(version=0, kraft_version=version)
            term.records += [record, term.told_voters.to_record()]
            term.told_voters = None
