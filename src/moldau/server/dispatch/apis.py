"""The table of APIs: which handler serves which API on which listener.

The dispatcher, ApiVersions and docs/COMPATIBILITY.md are all read from here; versions are those of
`protocol/apis.py`. An API that is not in this table is not announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS, Api
from moldau.server.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    api_versions,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller_registration,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_share_group_state,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    fetch,
    fetch_metadata,
    fetch_snapshot,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    initialize_share_group_state,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    read_share_group_state,
    read_share_group_state_summary,
    remove_raft_voter,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
    write_share_group_state,
    write_txn_markers,
)
from moldau.server.roles import BROKER, CONTROLLER

if TYPE_CHECKING:
    from moldau.server.dispatch.dispatcher import Handler


@dataclass(frozen=True, slots=True)
class ServedApi:
    api: Api
    handle: Handler
    listener_role: str
    #: Whether a newest version that is marked unstable is served (`unstable.api.versions.enable`).
    unstable: bool = False

    @property
    def min_version(self) -> int:
        return self.api.min_version

    @property
    def max_version(self) -> int:
        """The newest version; one still marked unstable is neither announced nor served unless asked for."""
        held_back = self.api.latest_unstable and not self.unstable
        return self.api.max_version - 1 if held_back else self.api.max_version

    @property
    def announced_min_version(self) -> int:
        """librdkafka compresses only when Produce 0 is announced, so it is, and refused when used."""
        return 0 if self.api.key == ApiKey.PRODUCE and self.listener_role == BROKER else self.min_version

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


_BROKER_HANDLERS: dict[int, Handler] = {
    ApiKey.PRODUCE: produce.handle,
    ApiKey.FETCH: fetch.handle,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.METADATA: metadata.handle,
    ApiKey.OFFSET_COMMIT: offset_commit.handle,
    ApiKey.OFFSET_FETCH: offset_fetch.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.JOIN_GROUP: join_group.handle,
    ApiKey.HEARTBEAT: heartbeat.handle,
    ApiKey.LEAVE_GROUP: leave_group.handle,
    ApiKey.SYNC_GROUP: sync_group.handle,
    ApiKey.DESCRIBE_GROUPS: describe_groups.handle,
    ApiKey.LIST_GROUPS: list_groups.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DELETE_RECORDS: delete_records.handle,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn.handle,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn.handle,
    ApiKey.END_TXN: end_txn.handle,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers.handle,
    ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit.handle,
    ApiKey.DESCRIBE_ACLS: describe_acls.handle,
    ApiKey.CREATE_ACLS: create_acls.handle,
    ApiKey.DELETE_ACLS: delete_acls.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs.handle,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.DELETE_GROUPS: delete_groups.handle,
    ApiKey.ELECT_LEADERS: elect_leaders.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.handle,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments.handle,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments.handle,
    ApiKey.OFFSET_DELETE: offset_delete.handle,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas.handle,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas.handle,
    ApiKey.DESCRIBE_QUORUM: describe_quorum.handle,
    ApiKey.UPDATE_FEATURES: update_features.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers.handle,
    ApiKey.UNREGISTER_BROKER: unregister_broker.handle,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions.handle,
    ApiKey.LIST_TRANSACTIONS: list_transactions.handle,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat.handle,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_group_describe.handle,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources.handle,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions.handle,
    ApiKey.SHARE_GROUP_HEARTBEAT: share_group_heartbeat.handle,
    ApiKey.SHARE_GROUP_DESCRIBE: share_group_describe.handle,
    ApiKey.SHARE_FETCH: share_fetch.handle,
    ApiKey.SHARE_ACKNOWLEDGE: share_acknowledge.handle,
    ApiKey.ADD_RAFT_VOTER: add_raft_voter.handle,
    ApiKey.REMOVE_RAFT_VOTER: remove_raft_voter.handle,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: initialize_share_group_state.handle,
    ApiKey.READ_SHARE_GROUP_STATE: read_share_group_state.handle,
    ApiKey.WRITE_SHARE_GROUP_STATE: write_share_group_state.handle,
    ApiKey.DELETE_SHARE_GROUP_STATE: delete_share_group_state.handle,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: read_share_group_state_summary.handle,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: describe_share_group_offsets.handle,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: alter_share_group_offsets.handle,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: delete_share_group_offsets.handle,
}

_CONTROLLER_HANDLERS: dict[int, Handler] = {
    ApiKey.FETCH: fetch_metadata.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DESCRIBE_ACLS: describe_acls.handle,
    ApiKey.CREATE_ACLS: create_acls.handle,
    ApiKey.DELETE_ACLS: delete_acls.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.ELECT_LEADERS: elect_leaders.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.handle,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments.handle,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments.handle,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas.handle,
    ApiKey.VOTE: vote.handle,
    ApiKey.BEGIN_QUORUM_EPOCH: begin_quorum_epoch.handle,
    ApiKey.END_QUORUM_EPOCH: end_quorum_epoch.handle,
    ApiKey.DESCRIBE_QUORUM: describe_quorum.handle,
    ApiKey.ALTER_PARTITION: alter_partition.handle,
    ApiKey.UPDATE_FEATURES: update_features.handle,
    ApiKey.ENVELOPE: envelope.handle,
    ApiKey.FETCH_SNAPSHOT: fetch_snapshot.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.BROKER_REGISTRATION: broker_registration.handle,
    ApiKey.BROKER_HEARTBEAT: broker_heartbeat.handle,
    ApiKey.UNREGISTER_BROKER: unregister_broker.handle,
    ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids.handle,
    ApiKey.CONTROLLER_REGISTRATION: controller_registration.handle,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: assign_replicas_to_dirs.handle,
    ApiKey.ADD_RAFT_VOTER: add_raft_voter.handle,
    ApiKey.REMOVE_RAFT_VOTER: remove_raft_voter.handle,
    ApiKey.UPDATE_RAFT_VOTER: update_raft_voter.handle,
}


def served_apis(role: str, *, unstable: bool = False) -> dict[int, ServedApi]:
    handlers = {BROKER: _BROKER_HANDLERS, CONTROLLER: _CONTROLLER_HANDLERS}[role]
    return {key: ServedApi(APIS[key], handle, role, unstable) for key, handle in handlers.items()}
