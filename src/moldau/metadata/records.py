"""The encoding of metadata records in the values of log records.

A value is a frame: frame version (always 1), record type and record version as unsigned varints, then the
body. The finalized `metadata.version` determines the version in which a record is written; any supported
version can be read.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.metadata.features import (
    CORDONED_DIRECTORIES_SUPPORTED,
    DIRECTORY_ASSIGNMENT_SUPPORTED,
    ELR_SUPPORTED,
    MIN_METADATA_VERSION,
)
from moldau.protocol.schema import DecodeError, Message, decode, encode_bytes
from moldau.protocol.stored.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

#: A decoded metadata record; one of the classes in `RECORD_TYPES`.
MetadataRecord = Message

FRAME_VERSION = 1

RECORD_TYPES: dict[int, type[Message]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
}


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """Encode a record, with its frame, in the version that `metadata_version` requires."""
    version = record_version(record, metadata_version)
    return bytes((FRAME_VERSION, record.API_KEY, version)) + encode_bytes(record, version)


def decode_record(value: bytes | memoryview) -> MetadataRecord:
    """Decode a framed record; raise DecodeError if it is damaged or was written by a newer release."""
    if len(value) < 3:
        raise DecodeError(f"a metadata record of {len(value)} bytes is too short for its frame")
    frame_version, record_type, version = value[0], value[1], value[2]
    # All types and versions are below 128, so each varint is one byte; a longer one is not supported.
    if frame_version != FRAME_VERSION:
        raise DecodeError(
            f"metadata records have frame version {FRAME_VERSION}, this one has {frame_version}"
        )
    cls = RECORD_TYPES.get(record_type)
    if cls is None or not cls.VERSIONS.has(version):
        raise DecodeError(f"metadata record type {record_type} version {version} is not supported")
    return decode(cls, value, version, 3)


def record_version(record: MetadataRecord, metadata_version: int) -> int:
    """Return the version in which to write a record."""
    choose = _VERSION_CHOICES.get(type(record))
    return 0 if choose is None else choose(record, metadata_version)


def _register_broker(record: Message, metadata_version: int) -> int:
    if metadata_version >= CORDONED_DIRECTORIES_SUPPORTED:
        return 4
    if metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED:
        return 3
    return 1 if metadata_version == MIN_METADATA_VERSION else 2


def _partition(record: Message, metadata_version: int) -> int:
    if metadata_version >= ELR_SUPPORTED:
        return 2
    return 1 if metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED else 0


def _registration_change(record: Message, metadata_version: int) -> int:
    """Return the lowest version that contains the fields that are set, as Kafka does for older nodes."""
    if not isinstance(record, BrokerRegistrationChangeRecord):
        raise TypeError(f"not a BrokerRegistrationChangeRecord: {record!r}")
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


#: Records that have more than one version; all others have version 0.
_VERSION_CHOICES: dict[type[Message], Callable[[Message, int], int]] = {
    RegisterBrokerRecord: _register_broker,
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition,
    BrokerRegistrationChangeRecord: _registration_change,
}
