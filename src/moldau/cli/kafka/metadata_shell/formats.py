"""Kafka's text formats of metadata: brokers, controllers, partitions, ACLs, SCRAM credentials, tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from moldau.base.ids import Uuid, format_uuid
from moldau.cli.shared.java import java_boolean
from moldau.config.listeners import SECURITY_PROTOCOLS
from moldau.metadata.features import VersionRange
from moldau.metadata.image import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    PartitionRegistration,
)
from moldau.protocol.stored.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)

_PROTOCOL_NAMES = {number: name for name, number in SECURITY_PROTOCOLS.items()}
_RECOVERY_STATES = ("RECOVERED", "RECOVERING")
# Names of Kafka's enums, by their numbers.
_RESOURCES = (
    "UNKNOWN",
    "ANY",
    "TOPIC",
    "GROUP",
    "CLUSTER",
    "TRANSACTIONAL_ID",
    "DELEGATION_TOKEN",
    "USER",
)
_PATTERNS = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
_PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")


def broker_text(broker: BrokerRegistration) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    cordoned = broker.cordoned_directories
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, "
        f"incarnationId={format_uuid(broker.incarnation_id)}, listeners={_endpoints(broker.endpoints)}, "
        f"supportedFeatures={_features(broker.features)}, rack={rack}, fenced={java_boolean(broker.fenced)}, "
        f"inControlledShutdown={java_boolean(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={java_boolean(broker.is_migrating_zk_broker)}, "
        f"directories={_ids(broker.directories)}, "
        f"cordonedDirectories={'null' if cordoned is None else _ids(cordoned)})"
    )


def controller_text(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.id}, incarnationId={format_uuid(controller.incarnation_id)}, "
        f"zkMigrationReady={java_boolean(controller.zk_migration_ready)}, "
        f"listeners={_endpoints(controller.endpoints)}, "
        f"supportedFeatures={_features(controller.features)})"
    )


def partition_text(partition: PartitionRegistration) -> str:
    return (
        f"PartitionRegistration(replicas={_listed(partition.replicas)}, "
        f"directories={_ids(partition.directories)}, isr={_listed(partition.isr)}, "
        f"removingReplicas={_listed(partition.removing)}, addingReplicas={_listed(partition.adding)}, "
        f"elr={_listed(partition.elr)}, lastKnownElr={_listed(partition.last_known_elr)}, "
        f"leader={partition.leader}, "
        f"leaderRecoveryState={_name(_RECOVERY_STATES, partition.leader_recovery_state)}, "
        f"leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def acl_text(acl: AccessControlEntryRecord) -> str:
    return (
        f"StandardAcl[resourceType={_name(_RESOURCES, acl.resource_type)}, resourceName={acl.resource_name}, "
        f"patternType={_name(_PATTERNS, acl.pattern_type)}, principal={acl.principal}, host={acl.host}, "
        f"operation={_name(_OPERATIONS, acl.operation)}, "
        f"permissionType={_name(_PERMISSIONS, acl.permission_type)}]"
    )


def scram_text(credential: UserScramCredentialRecord) -> str:
    return (
        f"ScramCredentialData(salt={bytes(credential.salt).hex()}, "
        f"storedKey={bytes(credential.stored_key).hex()}, serverKey={bytes(credential.server_key).hex()}, "
        f"iterations={credential.iterations})"
    )


def token_text(token: DelegationTokenRecord) -> str:
    """Format a delegation token; the unbalanced brackets are Kafka's."""
    return (
        f"DelegationTokenDatatokenId={token.token_id}(owner={token.owner}(tokenRequester={token.requester}"
        f"(renewers={' '.join(token.renewers)}, issueTimestamp={token.issue_timestamp}, "
        f"maxTimestamp={token.max_timestamp}), expiryTimestamp={token.expiration_timestamp}"
    )


def provenance_text(offset: int, epoch: int, time_ms: int) -> str:
    """Format the provenance of an image; the fraction of the second has no trailing zeros."""
    seconds, milliseconds = divmod(time_ms, 1000)
    when = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
    fraction = f".{milliseconds:03}".rstrip("0") if milliseconds else ""
    return f"offset {offset}, epoch {epoch}, time {when}{fraction}Z[UTC]"


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]


def _listed(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def _ids(ids: Iterable[Uuid]) -> str:
    return _listed(map(format_uuid, ids))


def _endpoints(endpoints: Iterable[Endpoint]) -> str:
    return _listed(
        f"Endpoint(listenerName='{each.name}', "
        f"securityProtocol={_PROTOCOL_NAMES.get(each.security_protocol, each.security_protocol)}, "
        f"host='{each.host}', port={each.port})"
        for each in sorted(endpoints)
    )


def _features(features: Mapping[str, VersionRange]) -> str:
    return "{" + ", ".join(f"{name}: {levels}" for name, levels in sorted(features.items())) + "}"
