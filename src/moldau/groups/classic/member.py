"""A member of a classic group: what it sent with JoinGroup, and the assignment of the leader."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.java_hash import string_hash
from moldau.groups.embedded_protocol import CONSUMER_PROTOCOL_TYPE, subscription_topics
from moldau.protocol.errors import DecodeError
from moldau.protocol.messages.describe_groups import DescribedGroupMember
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.stored.classic_groups import MemberMetadata

logger = logging.getLogger(__name__)


class ClassicProtocol(NamedTuple):
    """A protocol (assignor) that a member supports, with its metadata for the leader."""

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
    #: In the member's order of preference. For a loaded member only the selected one is known.
    protocols: tuple[ClassicProtocol, ...]
    assignment: bytes = b""
    #: Soft: whether the member has not completed a rebalance yet.
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
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Member {self.member_id} does not support the protocol {protocol}.",
        )

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that this member prefers; it supports at least one."""
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
        """The member in DescribeGroups, with its metadata for the selected protocol, if any."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )


def select_protocol(members: Collection[ClassicMember]) -> str:
    """Return the protocol that all members support and most prefer; ties are broken as by Java's HashMap."""
    supporters = Counter(name for member in members for name in member.protocol_names)
    candidates = {name for name, count in supporters.items() if count == len(members)}
    votes = Counter(member.vote(candidates) for member in members)
    most = max(votes.values())
    return min((name for name, count in votes.items() if count == most), key=_bucket)


def _bucket(name: str) -> int:
    """Return the bucket of a name in a Java HashMap with 16 buckets."""
    value = string_hash(name) & 0xFFFF_FFFF
    return (value ^ value >> 16) & 15


def subscribed_topics(
    group_id: str, protocol_type: str | None, protocol: str | None, members: Iterable[ClassicMember]
) -> frozenset[str] | None:
    """Return the topics that members subscribe to; None if they do not use the embedded consumer protocol."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: set[str] = set()
    for member in members:
        if protocol is None:
            return None
        try:
            topics.update(subscription_topics(member.metadata(protocol)))
        except DecodeError as error:
            logger.warning(
                "the subscription of %s in group %s cannot be decoded: %s", member.member_id, group_id, error
            )
            return None
    return frozenset(topics)
