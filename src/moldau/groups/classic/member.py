"""A member of a classic group: what it told when it joined, and the assignment the leader gave it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.java_hash import string_hash
from moldau.protocol.messages.describe_groups import DescribedGroupMember
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.stored.classic_groups import MemberMetadata


class ClassicProtocol(NamedTuple):
    """A way of assigning that a member can do, with what it tells the leader for it."""

    name: str
    metadata: bytes


def requested_protocols(request: JoinGroupRequest) -> tuple[ClassicProtocol, ...]:
    return tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols)


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    #: None unless the member is static.
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    #: In the order the member prefers them. Of a loaded member only the chosen one is known.
    protocols: tuple[ClassicProtocol, ...]
    assignment: bytes = b""
    #: Not stored: whether it has never been through a rebalance.
    is_new: bool = False

    @classmethod
    def from_stored(cls, stored: MemberMetadata, protocol_type: str, protocol: str | None) -> ClassicMember:
        rebalance_timeout_ms = stored.rebalance_timeout
        return cls(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            stored.session_timeout if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
            stored.session_timeout,
            protocol_type,
            (ClassicProtocol(protocol or "", bytes(stored.subscription)),),
            bytes(stored.assignment),
        )

    @property
    def protocol_names(self) -> set[str]:
        return {each.name for each in self.protocols}

    def metadata(self, protocol: str | None) -> bytes:
        for each in self.protocols:
            if each.name == protocol:
                return each.metadata
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.member_id} does not support the protocol {protocol}"
        )

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate this member likes best; it supports at least one of them."""
        return next(each.name for each in self.protocols if each.name in candidates)

    def stored(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    def described(self, protocol: str | None = None) -> DescribedGroupMember:
        """With what it told for the chosen protocol, if one is chosen."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )


def select_protocol(members: Collection[ClassicMember]) -> str:
    """The protocol that all support and most prefer; equal votes fall as they do in Kafka's hash map."""
    supporters = Counter(name for member in members for name in member.protocol_names)
    candidates = {name for name, count in supporters.items() if count == len(members)}
    votes = Counter(member.vote(candidates) for member in members)
    most = max(votes.values())
    return min((name for name, count in votes.items() if count == most), key=_bucket)


def _bucket(name: str) -> int:
    """Where Java's hash map keeps a name as long as it is small."""
    value = string_hash(name) & 0xFFFF_FFFF
    return (value ^ value >> 16) & 15
