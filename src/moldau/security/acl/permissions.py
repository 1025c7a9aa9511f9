"""The permissions that handlers check, by name.

A handler imports the constants it checks, and the table of docs/SECURITY.md is generated from these imports.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.base.errors import ErrorCode
from moldau.security.acl.enums import AclOperation, ResourceType

#: The name of the only resource of the type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"


class Permission(NamedTuple):
    operation: AclOperation
    resource_type: ResourceType


READ_TOPIC: Final = Permission(AclOperation.READ, ResourceType.TOPIC)
WRITE_TOPIC: Final = Permission(AclOperation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC: Final = Permission(AclOperation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC: Final = Permission(AclOperation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC: Final = Permission(AclOperation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC: Final = Permission(AclOperation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_TOPIC_CONFIGS: Final = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_TOPIC_CONFIGS: Final = Permission(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC)

READ_GROUP: Final = Permission(AclOperation.READ, ResourceType.GROUP)
DELETE_GROUP: Final = Permission(AclOperation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP: Final = Permission(AclOperation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_GROUP_CONFIGS: Final = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP)
ALTER_GROUP_CONFIGS: Final = Permission(AclOperation.ALTER_CONFIGS, ResourceType.GROUP)

CREATE_CLUSTER: Final = Permission(AclOperation.CREATE, ResourceType.CLUSTER)
DELETE_CLUSTER: Final = Permission(AclOperation.DELETE, ResourceType.CLUSTER)
ALTER_CLUSTER: Final = Permission(AclOperation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER: Final = Permission(AclOperation.DESCRIBE, ResourceType.CLUSTER)
CLUSTER_ACTION: Final = Permission(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Permission(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
IDEMPOTENT_WRITE: Final = Permission(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)

DESCRIBE_TRANSACTIONAL_ID: Final = Permission(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
WRITE_TRANSACTIONAL_ID: Final = Permission(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
TWO_PHASE_COMMIT: Final = Permission(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID)

DESCRIBE_TOKEN: Final = Permission(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
CREATE_USER_TOKENS: Final = Permission(AclOperation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_USER_TOKENS: Final = Permission(AclOperation.DESCRIBE_TOKENS, ResourceType.USER)

#: The error of a request without the permission for a resource of this type.
DENIED: Final[dict[ResourceType, ErrorCode]] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
