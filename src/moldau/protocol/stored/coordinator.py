"""Keys and values of the coordinators' topics, and the tables that map record types to them.

A key begins with its record type in two bytes, followed by the key in version 0; a value begins with its
version. A tombstone has no value.
"""

from __future__ import annotations

from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import Buffer, Message, decode, encode_bytes
from moldau.protocol.stored.classic_groups import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from moldau.protocol.stored.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from moldau.protocol.stored.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from moldau.protocol.stored.streams_groups import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue

#: Record type -> the class of the key, the class of the value.
CoordinatorTable = dict[int, tuple[type[Message], type[Message]]]

#: The records of `__consumer_offsets`.
CONSUMER_OFFSETS: CoordinatorTable = {
    key.API_KEY: (key, value)
    for key, value in (
        (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
        (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
        (ShareGroupMetadataKey, ShareGroupMetadataValue),
        (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
        (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
        (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
        (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
        (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
        (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
        (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
        (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
        (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
        (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
    )
}
#: The records of `__transaction_state`.
TRANSACTION_STATE: CoordinatorTable = {
    key.API_KEY: (key, value) for key, value in ((TransactionLogKey, TransactionLogValue),)
}
#: The records of `__share_group_state`.
SHARE_GROUP_STATE: CoordinatorTable = {
    key.API_KEY: (key, value)
    for key, value in (
        (ShareSnapshotKey, ShareSnapshotValue),
        (ShareUpdateKey, ShareUpdateValue),
    )
}


def encode_key(key: Message) -> bytes:
    return key.API_KEY.to_bytes(2, "big") + encode_bytes(key, 0)


def encode_value(value: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + encode_bytes(value, version)


def decode_key(table: CoordinatorTable, data: Buffer) -> Message:
    """Decode a key; `DecodeError` also for an unknown record type."""
    record_type = _prefix(data)
    if record_type not in table:
        raise DecodeError(f"unknown record type {record_type}")
    return decode(table[record_type][0], data, 0, 2)


def decode_value(table: CoordinatorTable, key: Message, data: Buffer) -> Message:
    """Decode the value of a key."""
    return decode(table[key.API_KEY][1], data, _prefix(data), 2)


def _prefix(data: Buffer) -> int:
    if len(data) < 2:
        raise DecodeError("a coordinator record's key or value must have at least two bytes")
    return int.from_bytes(data[:2], "big", signed=True)
