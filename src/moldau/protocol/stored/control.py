"""The records of control batches: transaction markers, leader changes, voters, snapshot header and footer.

The key of a control record is a version (0) and its type. The value of a transaction marker begins with its
version; the other values have it as their first field.
"""

from __future__ import annotations

from enum import IntEnum

from moldau.base.ids import Uuid
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import (
    Buffer,
    Message,
    Struct,
    array,
    decode_prefix,
    encode_bytes,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
    uuid,
)


class ControlRecordTypeSchema(Message, versions="0"):
    type: int = int16("0+")


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: int = int32("0+")


class LeaderChangeVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[LeaderChangeVoter] = array(LeaderChangeVoter, "0+")
    granting_voters: list[LeaderChangeVoter] = array(LeaderChangeVoter, "0+")


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    kraft_version: int = int16("0+")


class Endpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class Voter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    endpoints: list[Endpoint] = array(Endpoint, "0+")
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature, "0+")


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    voters: list[Voter] = array(Voter, "0+")


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


#: The class of the value of each type.
CONTROL_RECORDS: dict[int, type[Message]] = {
    ControlType.ABORT: EndTxnMarker,
    ControlType.COMMIT: EndTxnMarker,
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}


def encode_control_key(control_type: int) -> bytes:
    return b"\0\0" + encode_bytes(ControlRecordTypeSchema(type=control_type), 0)


def decode_control_key(key: Buffer | None) -> int:
    """Return the type of a control record as a number, because it may be unknown."""
    if key is None or _version(key) < 0:
        raise DecodeError("the key of a control record has no version")
    return decode_prefix(ControlRecordTypeSchema, key, 0, 2)[0].type


def encode_control_value(value: Message, version: int = 0) -> bytes:
    prefix = version.to_bytes(2, "big") if isinstance(value, EndTxnMarker) else b""
    return prefix + encode_bytes(value, version)


def decode_control_value(control_type: int, value: Buffer) -> Message:
    """Decode the value of a known type; a newer version is read as the newest known one."""
    message = CONTROL_RECORDS[control_type]
    version = min(_version(value), message.VERSIONS.last)
    return decode_prefix(message, value, version, 2 if message is EndTxnMarker else 0)[0]


def _version(data: Buffer) -> int:
    return int.from_bytes(data[:2], "big", signed=True)
