"""The table of APIs: which handler serves which API on which listener.

The dispatcher, ApiVersions and docs/COMPATIBILITY.md are all read from here; versions are those of
`protocol/apis.py`. An API that is not in this table is not announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

PRODUCE = 0


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
        return 0 if self.api.key == PRODUCE and self.listener_role == BROKER else self.min_version

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


_BROKER_HANDLERS: dict[int, Handler] = {
    0: produce.handle,
    1: fetch.handle,
    2: list_offsets.handle,
    3: metadata.handle,
    8: offset_commit.handle,
    9: offset_fetch.handle,
    10: find_coordinator.handle,
    11: join_group.handle,
    12: heartbeat.handle,
    13: leave_group.handle,
    14: sync_group.handle,
    15: describe_groups.handle,
    16: list_groups.handle,
    18: api_versions.handle,
    19: create_topics.handle,
    20: delete_topics.handle,
    21: delete_records.handle,
    22: init_producer_id.handle,
    23: offset_for_leader_epoch.handle,
    24: add_partitions_to_txn.handle,
    25: add_offsets_to_txn.handle,
    26: end_txn.handle,
    27: write_txn_markers.handle,
    28: txn_offset_commit.handle,
    29: describe_acls.handle,
    30: create_acls.handle,
    31: delete_acls.handle,
    32: describe_configs.handle,
    33: alter_configs.handle,
    34: alter_replica_log_dirs.handle,
    35: describe_log_dirs.handle,
    37: create_partitions.handle,
    42: delete_groups.handle,
    43: elect_leaders.handle,
    44: incremental_alter_configs.handle,
    45: alter_partition_reassignments.handle,
    46: list_partition_reassignments.handle,
    47: offset_delete.handle,
    48: describe_client_quotas.handle,
    49: alter_client_quotas.handle,
    55: describe_quorum.handle,
    57: update_features.handle,
    60: describe_cluster.handle,
    61: describe_producers.handle,
    64: unregister_broker.handle,
    65: describe_transactions.handle,
    66: list_transactions.handle,
    68: consumer_group_heartbeat.handle,
    69: consumer_group_describe.handle,
    74: list_config_resources.handle,
    75: describe_topic_partitions.handle,
    76: share_group_heartbeat.handle,
    77: share_group_describe.handle,
    78: share_fetch.handle,
    79: share_acknowledge.handle,
    80: add_raft_voter.handle,
    81: remove_raft_voter.handle,
    83: initialize_share_group_state.handle,
    84: read_share_group_state.handle,
    85: write_share_group_state.handle,
    86: delete_share_group_state.handle,
    87: read_share_group_state_summary.handle,
    90: describe_share_group_offsets.handle,
    91: alter_share_group_offsets.handle,
    92: delete_share_group_offsets.handle,
}

_CONTROLLER_HANDLERS: dict[int, Handler] = {
    1: fetch_metadata.handle,
    18: api_versions.handle,
    19: create_topics.handle,
    20: delete_topics.handle,
    29: describe_acls.handle,
    30: create_acls.handle,
    31: delete_acls.handle,
    32: describe_configs.handle,
    33: alter_configs.handle,
    37: create_partitions.handle,
    43: elect_leaders.handle,
    44: incremental_alter_configs.handle,
    45: alter_partition_reassignments.handle,
    46: list_partition_reassignments.handle,
    49: alter_client_quotas.handle,
    52: vote.handle,
    53: begin_quorum_epoch.handle,
    54: end_quorum_epoch.handle,
    55: describe_quorum.handle,
    56: alter_partition.handle,
    57: update_features.handle,
    58: envelope.handle,
    59: fetch_snapshot.handle,
    60: describe_cluster.handle,
    62: broker_registration.handle,
    63: broker_heartbeat.handle,
    64: unregister_broker.handle,
    67: allocate_producer_ids.handle,
    70: controller_registration.handle,
    73: assign_replicas_to_dirs.handle,
    80: add_raft_voter.handle,
    81: remove_raft_voter.handle,
    82: update_raft_voter.handle,
}


def served_apis(role: str, *, unstable: bool = False) -> dict[int, ServedApi]:
    handlers = {BROKER: _BROKER_HANDLERS, CONTROLLER: _CONTROLLER_HANDLERS}[role]
    return {key: ServedApi(APIS[key], handle, role, unstable) for key, handle in handlers.items()}
