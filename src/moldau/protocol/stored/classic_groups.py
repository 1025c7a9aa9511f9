"""Records of `__consumer_offsets`: committed offsets and classic groups."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.schema import Message, Struct, array, bytes_, int32, int64, string, uuid


class LegacyOffsetCommitKey(Message, api_key=0, versions="0"):
    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


class LegacyOffsetCommitValue(Message, api_key=0, versions="0"):
    offset: int = int64("0")
    metadata: str = string("0")
    commit_timestamp: int = int64("0")


class OffsetCommitKey(Message, api_key=1, versions="0"):
    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: Uuid = uuid("4+", tagged="4+", tag=0, ignorable=True)


class GroupMetadataKey(Message, api_key=2, versions="0"):
    group: str = string("0")


class MemberMetadata(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", default=None, nullable="3+", ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32("0+")
    subscription: bytes = bytes_("0+")
    assignment: bytes = bytes_("0+")


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+")
