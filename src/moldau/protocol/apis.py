"""The table of all APIs of Kafka 4.3: key, name, versions, first flexible version, listeners that serve it.

Importing the table imports no message; `Api.request` and `Api.response` do, when first asked. Keys 4 to 7
have no valid version any more and are left out. What a node serves and announces is decided above (`server`):
this table says what exists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.protocol.schema import Message


class Api:
    """One API. `flexible_from` is None when no version is flexible; `latest_unstable` marks `max_version`."""

    __slots__ = (
        "_request",
        "_response",
        "flexible_from",
        "key",
        "latest_unstable",
        "listeners",
        "max_version",
        "min_version",
        "module",
        "name",
    )

    def __init__(
        self,
        key: int,
        name: str,
        module: str,
        min_version: int,
        max_version: int,
        flexible_from: int | None,
        listeners: frozenset[str],
        *,
        latest_unstable: bool = False,
    ) -> None:
        self.key = key
        self.name = name
        self.module = module
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = flexible_from
        self.listeners = listeners
        self.latest_unstable = latest_unstable
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    @property
    def request(self) -> type[Message]:
        if self._request is None:
            self._request = self._load("Request")
        return self._request

    @property
    def response(self) -> type[Message]:
        if self._response is None:
            self._response = self._load("Response")
        return self._response

    def is_flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from

    def _load(self, suffix: str) -> type[Message]:
        module = import_module(f"moldau.protocol.messages.{self.module}")
        message: type[Message] = getattr(module, self.name + suffix)
        return message

    def __repr__(self) -> str:
        return f"<Api {self.name} {self.min_version}-{self.max_version}>"


_BROKER = frozenset({"broker"})
_CONTROLLER = frozenset({"controller"})
_BOTH = _BROKER | _CONTROLLER

_TABLE = (
    Api(0, "Produce", "produce", 3, 13, 9, _BROKER),
    Api(1, "Fetch", "fetch", 4, 18, 12, _BOTH),
    Api(2, "ListOffsets", "list_offsets", 1, 11, 6, _BROKER),
    Api(3, "Metadata", "metadata", 0, 13, 9, _BROKER),
    Api(8, "OffsetCommit", "offset_commit", 2, 10, 8, _BROKER),
    Api(9, "OffsetFetch", "offset_fetch", 1, 10, 6, _BROKER),
    Api(10, "FindCoordinator", "find_coordinator", 0, 6, 3, _BROKER),
    Api(11, "JoinGroup", "join_group", 0, 9, 6, _BROKER),
    Api(12, "Heartbeat", "heartbeat", 0, 4, 4, _BROKER),
    Api(13, "LeaveGroup", "leave_group", 0, 5, 4, _BROKER),
    Api(14, "SyncGroup", "sync_group", 0, 5, 4, _BROKER),
    Api(15, "DescribeGroups", "describe_groups", 0, 6, 5, _BROKER),
    Api(16, "ListGroups", "list_groups", 0, 5, 3, _BROKER),
    Api(17, "SaslHandshake", "sasl_handshake", 0, 1, None, _BOTH),
    Api(18, "ApiVersions", "api_versions", 0, 4, 3, _BOTH),
    Api(19, "CreateTopics", "create_topics", 2, 7, 5, _BOTH),
    Api(20, "DeleteTopics", "delete_topics", 1, 6, 4, _BOTH),
    Api(21, "DeleteRecords", "delete_records", 0, 2, 2, _BROKER),
    Api(22, "InitProducerId", "init_producer_id", 0, 6, 2, _BROKER, latest_unstable=True),
    Api(23, "OffsetForLeaderEpoch", "offset_for_leader_epoch", 2, 4, 4, _BROKER),
    Api(24, "AddPartitionsToTxn", "add_partitions_to_txn", 0, 5, 3, _BROKER),
    Api(25, "AddOffsetsToTxn", "add_offsets_to_txn", 0, 4, 3, _BROKER),
    Api(26, "EndTxn", "end_txn", 0, 5, 3, _BROKER),
    Api(27, "WriteTxnMarkers", "write_txn_markers", 1, 2, 1, _BROKER),
    Api(28, "TxnOffsetCommit", "txn_offset_commit", 0, 5, 3, _BROKER),
    Api(29, "DescribeAcls", "describe_acls", 1, 3, 2, _BOTH),
    Api(30, "CreateAcls", "create_acls", 1, 3, 2, _BOTH),
    Api(31, "DeleteAcls", "delete_acls", 1, 3, 2, _BOTH),
    Api(32, "DescribeConfigs", "describe_configs", 1, 4, 4, _BOTH),
    Api(33, "AlterConfigs", "alter_configs", 0, 2, 2, _BOTH),
    Api(34, "AlterReplicaLogDirs", "alter_replica_log_dirs", 1, 2, 2, _BROKER),
    Api(35, "DescribeLogDirs", "describe_log_dirs", 1, 5, 2, _BROKER),
    Api(36, "SaslAuthenticate", "sasl_authenticate", 0, 2, 2, _BOTH),
    Api(37, "CreatePartitions", "create_partitions", 0, 3, 2, _BOTH),
    Api(38, "CreateDelegationToken", "create_delegation_token", 1, 3, 2, _BOTH),
    Api(39, "RenewDelegationToken", "renew_delegation_token", 1, 2, 2, _BOTH),
    Api(40, "ExpireDelegationToken", "expire_delegation_token", 1, 2, 2, _BOTH),
    Api(41, "DescribeDelegationToken", "describe_delegation_token", 1, 3, 2, _BOTH),
    Api(42, "DeleteGroups", "delete_groups", 0, 2, 2, _BROKER),
    Api(43, "ElectLeaders", "elect_leaders", 0, 2, 2, _BOTH),
    Api(44, "IncrementalAlterConfigs", "incremental_alter_configs", 0, 1, 1, _BOTH),
    Api(45, "AlterPartitionReassignments", "alter_partition_reassignments", 0, 1, 0, _BOTH),
    Api(46, "ListPartitionReassignments", "list_partition_reassignments", 0, 0, 0, _BOTH),
    Api(47, "OffsetDelete", "offset_delete", 0, 0, None, _BROKER),
    Api(48, "DescribeClientQuotas", "describe_client_quotas", 0, 1, 1, _BROKER),
    Api(49, "AlterClientQuotas", "alter_client_quotas", 0, 1, 1, _BOTH),
    Api(50, "DescribeUserScramCredentials", "describe_user_scram_credentials", 0, 0, 0, _BOTH),
    Api(51, "AlterUserScramCredentials", "alter_user_scram_credentials", 0, 0, 0, _BOTH),
    Api(52, "Vote", "vote", 0, 2, 0, _CONTROLLER),
    Api(53, "BeginQuorumEpoch", "begin_quorum_epoch", 0, 1, 1, _CONTROLLER),
    Api(54, "EndQuorumEpoch", "end_quorum_epoch", 0, 1, 1, _CONTROLLER),
    Api(55, "DescribeQuorum", "describe_quorum", 0, 2, 0, _BOTH),
    Api(56, "AlterPartition", "alter_partition", 2, 3, 0, _CONTROLLER),
    Api(57, "UpdateFeatures", "update_features", 0, 2, 0, _BOTH),
    Api(58, "Envelope", "envelope", 0, 0, 0, _CONTROLLER),
    Api(59, "FetchSnapshot", "fetch_snapshot", 0, 1, 0, _CONTROLLER),
    Api(60, "DescribeCluster", "describe_cluster", 0, 2, 0, _BOTH),
    Api(61, "DescribeProducers", "describe_producers", 0, 0, 0, _BROKER),
    Api(62, "BrokerRegistration", "broker_registration", 0, 4, 0, _CONTROLLER),
    Api(63, "BrokerHeartbeat", "broker_heartbeat", 0, 2, 0, _CONTROLLER),
    Api(64, "UnregisterBroker", "unregister_broker", 0, 0, 0, _BOTH),
    Api(65, "DescribeTransactions", "describe_transactions", 0, 0, 0, _BROKER),
    Api(66, "ListTransactions", "list_transactions", 0, 2, 0, _BROKER),
    Api(67, "AllocateProducerIds", "allocate_producer_ids", 0, 0, 0, _CONTROLLER),
    Api(68, "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 0, 1, 0, _BROKER),
    Api(69, "ConsumerGroupDescribe", "consumer_group_describe", 0, 1, 0, _BROKER),
    Api(70, "ControllerRegistration", "controller_registration", 0, 0, 0, _CONTROLLER),
    Api(71, "GetTelemetrySubscriptions", "get_telemetry_subscriptions", 0, 0, 0, _BROKER),
    Api(72, "PushTelemetry", "push_telemetry", 0, 0, 0, _BROKER),
    Api(73, "AssignReplicasToDirs", "assign_replicas_to_dirs", 0, 0, 0, _CONTROLLER),
    Api(74, "ListConfigResources", "list_config_resources", 0, 1, 0, _BROKER),
    Api(75, "DescribeTopicPartitions", "describe_topic_partitions", 0, 0, 0, _BROKER),
    Api(76, "ShareGroupHeartbeat", "share_group_heartbeat", 1, 1, 0, _BROKER),
    Api(77, "ShareGroupDescribe", "share_group_describe", 1, 1, 0, _BROKER),
    Api(78, "ShareFetch", "share_fetch", 1, 2, 0, _BROKER),
    Api(79, "ShareAcknowledge", "share_acknowledge", 1, 2, 0, _BROKER),
    Api(80, "AddRaftVoter", "add_raft_voter", 0, 1, 0, _BOTH),
    Api(81, "RemoveRaftVoter", "remove_raft_voter", 0, 0, 0, _BOTH),
    Api(82, "UpdateRaftVoter", "update_raft_voter", 0, 0, 0, _CONTROLLER),
    Api(83, "InitializeShareGroupState", "initialize_share_group_state", 0, 0, 0, _BROKER),
    Api(84, "ReadShareGroupState", "read_share_group_state", 0, 0, 0, _BROKER),
    Api(85, "WriteShareGroupState", "write_share_group_state", 0, 1, 0, _BROKER),
    Api(86, "DeleteShareGroupState", "delete_share_group_state", 0, 0, 0, _BROKER),
    Api(87, "ReadShareGroupStateSummary", "read_share_group_state_summary", 0, 1, 0, _BROKER),
    Api(88, "StreamsGroupHeartbeat", "streams_group_heartbeat", 0, 0, 0, _BROKER),
    Api(89, "StreamsGroupDescribe", "streams_group_describe", 0, 0, 0, _BROKER),
    Api(90, "DescribeShareGroupOffsets", "describe_share_group_offsets", 0, 1, 0, _BROKER),
    Api(91, "AlterShareGroupOffsets", "alter_share_group_offsets", 0, 0, 0, _BROKER),
    Api(92, "DeleteShareGroupOffsets", "delete_share_group_offsets", 0, 0, 0, _BROKER),
)

APIS: dict[int, Api] = {api.key: api for api in _TABLE}
api_by_name: dict[str, Api] = {api.name: api for api in _TABLE}
