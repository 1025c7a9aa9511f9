"""Cases of requests about the cluster, its configs, users and ACLs."""

from __future__ import annotations

from typing import Any

from moldau.metadata.image import ResourceType as ConfigType
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.list_config_resources import ListConfigResourcesRequest
from moldau.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.harness.security.authorization.case import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    TOPIC_DENIED,
    Case,
    Outcome,
    World,
    cluster,
    group,
    topic,
)

_SET = 0


def _describe_configs(kind: ConfigType, name: str) -> DescribeConfigsRequest:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    return DescribeConfigsRequest(resources=[asked])


def _alter(kind: ConfigType, name: str, config: str, value: str) -> alter_configs.AlterConfigsRequest:
    configs = [alter_configs.AlterableConfig(name=config, value=value)]
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return alter_configs.AlterConfigsRequest(resources=[resource], validate_only=True)


def _alter_incrementally(
    kind: ConfigType, name: str, config: str, value: str
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    configs = [incremental_alter_configs.AlterableConfig(name=config, config_operation=_SET, value=value)]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


def alter_loggers(world: World) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    return _alter_incrementally(ConfigType.BROKER_LOGGER, str(world.node_id), "root", "INFO")


def _elect() -> ElectLeadersRequest:
    return ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="orders", partitions=[0])], timeout_ms=10_000
    )


def _cancel_reassignment() -> AlterPartitionReassignmentsRequest:
    partitions = [ReassignablePartition(partition_index=0, replicas=None)]
    return AlterPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=[ReassignableTopic(name="orders", partitions=partitions)]
    )


def _move() -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name="orders", partitions=[0])]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/nowhere", topics=topics)])


def _quota() -> AlterClientQuotasRequest:
    entity = [EntityData(entity_type="user", entity_name="somebody")]
    ops = [OpData(key="producer_byte_rate", value=1000.0)]
    return AlterClientQuotasRequest(entries=[RequestEntryData(entity=entity, ops=ops)], validate_only=True)


def _create_acl() -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=2,
                resource_name="unused",
                resource_pattern_type=3,
                principal="User:nobody",
                host="*",
                operation=8,
                permission_type=3,
            )
        ]
    )


def _delete_acls() -> DeleteAclsRequest:
    wanted = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="without ACLs",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return DeleteAclsRequest(filters=[wanted])


def _describe_acls() -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="without ACLs",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _describe_quorum() -> DescribeQuorumRequest:
    partitions = [RequestPartitionData(partition_index=0)]
    return DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name="__cluster_metadata", partitions=partitions)]
    )


def _operations(response: Any) -> Outcome:
    return (response.error_code, response.cluster_authorized_operations)


_DESCRIBE_CONFIGS_CASES = [
    Case(
        "DescribeConfigs of a topic",
        4,
        lambda world: _describe_configs(ConfigType.TOPIC, "orders"),
        TOPIC_DENIED,
        (topic("DESCRIBE_CONFIGS"),),
        also=(
            ((topic("ALTER_CONFIGS"),), ()),
            ((topic("DESCRIBE"), topic("ALTER"), cluster("DESCRIBE_CONFIGS")), TOPIC_DENIED),
        ),
    ),
    Case(
        "DescribeConfigs of a missing topic",
        4,
        lambda world: _describe_configs(ConfigType.TOPIC, "missing"),
        TOPIC_DENIED,
        (topic("DESCRIBE_CONFIGS", "missing"),),
        allowed=(3,),
    ),
    Case(
        "DescribeConfigs of a broker",
        4,
        lambda world: _describe_configs(ConfigType.BROKER, str(world.node_id)),
        CLUSTER_DENIED,
        (cluster("DESCRIBE_CONFIGS"),),
        also=(((cluster("ALTER_CONFIGS"),), ()), ((cluster("DESCRIBE"),), CLUSTER_DENIED)),
    ),
    Case(
        "DescribeConfigs of loggers",
        4,
        lambda world: _describe_configs(ConfigType.BROKER_LOGGER, str(world.node_id)),
        CLUSTER_DENIED,
        (cluster("DESCRIBE_CONFIGS"),),
    ),
    Case(
        "DescribeConfigs of client metrics",
        4,
        lambda world: _describe_configs(ConfigType.CLIENT_METRICS, "metrics"),
        CLUSTER_DENIED,
        (cluster("DESCRIBE_CONFIGS"),),
    ),
    Case(
        "DescribeConfigs of a group",
        4,
        lambda world: _describe_configs(ConfigType.GROUP, "readers"),
        GROUP_DENIED,
        (group("DESCRIBE_CONFIGS"),),
        also=(((group("READ"), group("DESCRIBE")), GROUP_DENIED),),
    ),
    Case(
        "ListConfigResources",
        1,
        lambda world: ListConfigResourcesRequest(),
        CLUSTER_DENIED,
        (cluster("DESCRIBE_CONFIGS"),),
    ),
]

_ALTER_CONFIGS_CASES = [
    Case(
        "AlterConfigs of a topic",
        2,
        lambda world: _alter(ConfigType.TOPIC, "orders", "retention.ms", "1000000"),
        TOPIC_DENIED,
        (topic("ALTER_CONFIGS"),),
        also=(((topic("ALTER"), topic("DESCRIBE_CONFIGS")), TOPIC_DENIED),),
    ),
    Case(
        "AlterConfigs of a missing topic",
        2,
        lambda world: _alter(ConfigType.TOPIC, "missing", "retention.ms", "1000000"),
        TOPIC_DENIED,
        (topic("ALTER_CONFIGS", "missing"),),
        allowed=(3,),
    ),
    Case(
        "AlterConfigs of all brokers",
        2,
        lambda world: _alter(ConfigType.BROKER, "", "log.cleaner.threads", "1"),
        CLUSTER_DENIED,
        (cluster("ALTER_CONFIGS"),),
        allowed=(40,),
    ),
    Case(
        "IncrementalAlterConfigs of a topic",
        1,
        lambda world: _alter_incrementally(ConfigType.TOPIC, "orders", "retention.ms", "1000000"),
        TOPIC_DENIED,
        (topic("ALTER_CONFIGS"),),
    ),
    Case(
        "IncrementalAlterConfigs of a broker",
        1,
        lambda world: _alter_incrementally(ConfigType.BROKER, str(world.node_id), "log.cleaner.threads", "1"),
        CLUSTER_DENIED,
        (cluster("ALTER_CONFIGS"),),
        also=(((cluster("ALTER"),), CLUSTER_DENIED),),
    ),
    Case(
        "IncrementalAlterConfigs of a group",
        1,
        lambda world: _alter_incrementally(
            ConfigType.GROUP, "readers", "consumer.heartbeat.interval.ms", "5000"
        ),
        GROUP_DENIED,
        (group("ALTER_CONFIGS"),),
    ),
    Case(
        "IncrementalAlterConfigs of client metrics",
        1,
        lambda world: _alter_incrementally(ConfigType.CLIENT_METRICS, "metrics", "interval.ms", "1000"),
        CLUSTER_DENIED,
        (cluster("ALTER_CONFIGS"),),
    ),
    Case(
        "IncrementalAlterConfigs of loggers",
        1,
        alter_loggers,
        CLUSTER_DENIED,
        (cluster("ALTER_CONFIGS"),),
    ),
    Case(
        "DescribeClientQuotas",
        1,
        lambda world: DescribeClientQuotasRequest(),
        CLUSTER_DENIED,
        (cluster("DESCRIBE_CONFIGS"),),
    ),
    Case(
        "AlterClientQuotas",
        1,
        lambda world: _quota(),
        CLUSTER_DENIED,
        (cluster("ALTER_CONFIGS"),),
        also=(((cluster("ALTER"),), CLUSTER_DENIED),),
    ),
]

_CLUSTER_CASES = [
    Case("ApiVersions", 0, lambda world: ApiVersionsRequest(), ()),
    Case("SaslHandshake", 1, lambda world: SaslHandshakeRequest(mechanism="PLAIN"), (34,)),
    Case(
        "DescribeCluster",
        1,
        lambda world: DescribeClusterRequest(include_cluster_authorized_operations=True),
        (0, 0),
        (cluster("DESCRIBE"),),
        allowed=(0, 1 << 8),
        also=(((cluster("ALTER_CONFIGS"),), (0, 0)),),
        observe=_operations,
    ),
    Case("DescribeQuorum", 2, lambda world: _describe_quorum(), CLUSTER_DENIED, (cluster("DESCRIBE"),)),
    Case("AlterReplicaLogDirs", 2, lambda world: _move(), CLUSTER_DENIED, (cluster("ALTER"),), allowed=(57,)),
    Case(
        "DescribeLogDirs",
        4,
        lambda world: DescribeLogDirsRequest(topics=None),
        CLUSTER_DENIED,
        (cluster("DESCRIBE"),),
        also=(((topic("ALL"),), CLUSTER_DENIED),),
    ),
    Case(
        "DescribeLogDirs",
        1,
        lambda world: DescribeLogDirsRequest(topics=None),
        (0,),
        (cluster("DESCRIBE"),),
        allowed=(1,),
        observe=lambda response: (len(response.results),),
    ),
    Case("ElectLeaders", 2, lambda world: _elect(), CLUSTER_DENIED, (cluster("ALTER"),), allowed=(84,)),
    Case("ElectLeaders", 0, lambda world: _elect(), CLUSTER_DENIED, (cluster("ALTER"),), allowed=(84,)),
    Case(
        "AlterPartitionReassignments",
        1,
        lambda world: _cancel_reassignment(),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        allowed=(85,),
        also=(((topic("ALTER"),), CLUSTER_DENIED),),
    ),
    Case(
        "ListPartitionReassignments",
        0,
        lambda world: ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None),
        CLUSTER_DENIED,
        (cluster("DESCRIBE"),),
    ),
    Case(
        "UpdateFeatures",
        1,
        lambda world: UpdateFeaturesRequest(
            timeout_ms=10_000,
            feature_updates=[
                FeatureUpdateKey(feature="unknown.version", max_version_level=1, upgrade_type=1)
            ],
            validate_only=True,
        ),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        allowed=(95,),
    ),
    Case(
        "UnregisterBroker",
        0,
        lambda world: UnregisterBrokerRequest(broker_id=77),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        allowed=(102,),
    ),
    Case(
        "AddRaftVoter",
        0,
        lambda world: AddRaftVoterRequest(
            cluster_id="another",
            timeout_ms=1000,
            voter_id=77,
            voter_directory_id=b"\x09" * 16,
            listeners=[Listener(name="CONTROLLER", host="localhost", port=1)],
        ),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        allowed=(104,),
    ),
    Case(
        "RemoveRaftVoter",
        0,
        lambda world: RemoveRaftVoterRequest(
            cluster_id="another", voter_id=77, voter_directory_id=b"\x09" * 16
        ),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        allowed=(104,),
    ),
]

_USER_CASES = [
    Case("DescribeAcls", 3, lambda world: _describe_acls(), CLUSTER_DENIED, (cluster("DESCRIBE"),)),
    Case(
        "CreateAcls",
        3,
        lambda world: _create_acl(),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        also=(((cluster("CREATE"), cluster("DESCRIBE")), CLUSTER_DENIED),),
    ),
    Case("DeleteAcls", 3, lambda world: _delete_acls(), CLUSTER_DENIED, (cluster("ALTER"),)),
    Case(
        "DescribeUserScramCredentials",
        0,
        lambda world: DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")]),
        CLUSTER_DENIED,
        (cluster("DESCRIBE"),),
        allowed=(91,),
    ),
    Case(
        "AlterUserScramCredentials",
        0,
        lambda world: AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="nobody", mechanism=1)]
        ),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        allowed=(91,),
    ),
]

CASES: list[Case] = _DESCRIBE_CONFIGS_CASES + _ALTER_CONFIGS_CASES + _CLUSTER_CASES + _USER_CASES
