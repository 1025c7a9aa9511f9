"""The metadata log of a stopped node: appending records as its controller would, and its latest snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moldau.base.clock import SystemClock
from moldau.base.ids import Uuid, parse_uuid
from moldau.config.properties import load_properties
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.stored import metadata as stored
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import list_snapshots, read_snapshot
from moldau.storage.disk.disk import PosixDisk
from tests.harness.folders.workload import alter_quotas
from tests.harness.waiting import eventually

METADATA_VERSION = 30
METADATA_FOLDER = "__cluster_metadata-0"
_TICKS = "ticks"
_BROKER, _EPOCH = 77, 5
_TOPIC, _GONE = Uuid(b"kept-topic-kept-"), Uuid(b"gone-topic-gone-")
_ACL, _GONE_ACL = Uuid(b"kept-acl-kept-ac"), Uuid(b"gone-acl-gone-ac")


def append_records(directory: Path, records: Sequence[MetadataRecord]) -> None:
    """Append a batch of the last epoch to the metadata log in a log directory; its node must not run."""
    meta = load_properties(directory / "meta.properties")
    settings = QuorumSettings(1, str(directory), parse_uuid(meta["directory.id"]))
    log = MetadataLog.open(PosixDisk(), SystemClock(), settings)
    log.append([[encode_record(record, METADATA_VERSION) for record in records]], log.end.epoch)
    log.flush()
    log.set_high_watermark(log.end_offset)
    log.close()


def make_snapshot(bootstrap: str, directory: Path) -> None:
    """Change the metadata of a node that writes a snapshot after every change, and wait for the snapshot."""
    folder = directory / METADATA_FOLDER
    before = set(folder.glob("*.checkpoint"))
    for value in (1.0, None):
        alter_quotas(bootstrap, ({"user": _TICKS}, {"request_percentage": value}))
    eventually(lambda: set(folder.glob("*.checkpoint")) - before, what="a new snapshot")


def lasting_records(directory: Path, *, leaders: bool = False) -> list[str]:
    """Return the records of the latest snapshot except those that a node writes at every start.

    With `leaders`, leaders and in-sync replicas are included.
    """
    folder = str(directory / METADATA_FOLDER)
    latest = list_snapshots(PosixDisk(), folder)[-1]
    records = read_snapshot(PosixDisk(), f"{folder}/{latest.file_name}").records
    return sorted(
        _complete(record) if leaders else _normal(record) for record in records if not _is_own(record)
    )


def _is_own(record: MetadataRecord) -> bool:
    match record:
        case stored.ClientQuotaRecord():
            return any(part.entity_name == _TICKS for part in record.entity)
        case stored.RegisterBrokerRecord():
            return record.broker_id == 1
        case stored.RegisterControllerRecord():
            return record.controller_id == 1
    return False


def _normal(record: MetadataRecord) -> str:
    if isinstance(record, stored.PartitionRecord) and record.replicas == [1]:
        record.leader, record.leader_epoch, record.partition_epoch, record.isr = 1, 0, 0, [1]
        record.leader_recovery_state = 0
        record.eligible_leader_replicas = record.last_known_elr = None
    return _complete(record)


def _complete(record: MetadataRecord) -> str:
    """Return the record as `repr` does, with the values that `repr` hides."""
    values = ", ".join(f"{field.name}={getattr(record, field.name)!r}" for field in record.FIELDS)
    return f"{type(record).__name__}({values})"


def records_of_every_type() -> list[MetadataRecord]:
    """Return records that do not affect a running node: an absent broker, tokens, ACLs, …"""
    return [
        stored.NoOpRecord(),
        stored.ZkMigrationStateRecord(zk_migration_state=0),
        *_of_brokers(),
        *_of_topics(),
        *_of_security(),
        stored.ConfigRecord(resource_type=4, resource_name="77", name="log.cleaner.threads", value="3"),
        stored.ClientQuotaRecord(
            entity=[stored.EntityData(entity_type="user", entity_name="kept")],
            key="request_percentage",
            value=12.5,
        ),
        stored.ProducerIdsRecord(broker_id=_BROKER, broker_epoch=_EPOCH, next_producer_id=123_000),
        stored.BeginTransactionRecord(name="kept"),
        _quota("in a transaction"),
        stored.EndTransactionRecord(),
        stored.BeginTransactionRecord(name="dropped"),
        _quota("aborted"),
        stored.AbortTransactionRecord(reason="a test"),
    ]


def _quota(user: str) -> MetadataRecord:
    entity = [stored.EntityData(entity_type="user", entity_name=user)]
    return stored.ClientQuotaRecord(entity=entity, key="consumer_byte_rate", value=1e6)


def _of_brokers() -> list[MetadataRecord]:
    def registered(broker: int) -> MetadataRecord:
        return stored.RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=Uuid(bytes([broker]) * 16),
            broker_epoch=_EPOCH,
            end_points=[stored.BrokerEndpoint(name="PLAINTEXT", host="elsewhere", port=9092)],
            features=[
                stored.BrokerFeature(
                    name="metadata.version", min_supported_version=7, max_supported_version=30
                )
            ],
            rack="r",
            fenced=True,
            log_dirs=[Uuid(b"directory-of-%d-" % broker), Uuid(b"another-one-of%d" % broker)],
        )

    return [
        registered(_BROKER),
        registered(_BROKER + 1),
        stored.UnregisterBrokerRecord(broker_id=_BROKER + 1, broker_epoch=_EPOCH),
        stored.UnfenceBrokerRecord(id=_BROKER, epoch=_EPOCH),
        stored.FenceBrokerRecord(id=_BROKER, epoch=_EPOCH),
        stored.BrokerRegistrationChangeRecord(
            broker_id=_BROKER, broker_epoch=_EPOCH, cordoned_log_dirs=[Uuid(b"directory-of-77-")]
        ),
        stored.RegisterControllerRecord(
            controller_id=88,
            incarnation_id=Uuid(b"controller-no-88"),
            end_points=[stored.ControllerEndpoint(name="CONTROLLER", host="elsewhere", port=9093)],
            features=[stored.ControllerFeature(name="kraft.version", max_supported_version=1)],
        ),
    ]


def _of_topics() -> list[MetadataRecord]:
    """Partitions of an absent broker: they have no leader and no log."""

    def topic(name: str, topic_id: Uuid) -> list[MetadataRecord]:
        partition = stored.PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[_BROKER],
            isr=[_BROKER],
            leader=-1,
            leader_epoch=4,
            partition_epoch=6,
            directories=[Uuid(b"directory-of-77-")],
        )
        return [stored.TopicRecord(name=name, topic_id=topic_id), partition]

    return [
        *topic("kept", _TOPIC),
        *topic("gone", _GONE),
        stored.ConfigRecord(resource_type=2, resource_name="kept", name="retention.ms", value="1000"),
        stored.ConfigRecord(resource_type=2, resource_name="kept", name="flush.ms", value="7"),
        stored.ConfigRecord(resource_type=2, resource_name="kept", name="flush.ms", value=None),
        stored.PartitionChangeRecord(
            partition_id=0, topic_id=_TOPIC, isr=[], eligible_leader_replicas=[_BROKER], last_known_elr=[]
        ),
        stored.ClearElrRecord(topic_name="kept"),
        stored.PartitionChangeRecord(partition_id=0, topic_id=_TOPIC, eligible_leader_replicas=[_BROKER]),
        stored.RemoveTopicRecord(topic_id=_GONE),
    ]


def _of_security() -> list[MetadataRecord]:
    def acl(identity: Uuid, **fields: Any) -> MetadataRecord:
        rule = {"resource_type": 2, "pattern_type": 4, "operation": 3, "permission_type": 3, **fields}
        return stored.AccessControlEntryRecord(
            id=identity, resource_name="orders", principal="User:alice", host="*", **rule
        )

    def scram(user: str) -> MetadataRecord:
        return stored.UserScramCredentialRecord(
            name=user,
            mechanism=1,
            salt=b"salt",
            stored_key=b"stored" * 5,
            server_key=b"server" * 5,
            iterations=4096,
        )

    def token(identity: str) -> MetadataRecord:
        return stored.DelegationTokenRecord(
            owner="User:alice",
            requester="User:bob",
            renewers=["User:carol"],
            issue_timestamp=1_700_000_000_000,
            max_timestamp=9_700_000_000_000,
            expiration_timestamp=9_600_000_000_000,
            token_id=identity,
        )

    return [
        acl(_ACL),
        acl(_GONE_ACL, operation=4),
        stored.RemoveAccessControlEntryRecord(id=_GONE_ACL),
        scram("kept"),
        scram("gone"),
        stored.RemoveUserScramCredentialRecord(name="gone", mechanism=1),
        token("kept"),
        token("gone"),
        stored.RemoveDelegationTokenRecord(token_id="gone"),
    ]
