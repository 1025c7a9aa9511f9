"""The API table: the handler of every API on broker and controller listeners, and what the handler uses.

The dispatcher, ApiVersions and docs/COMPATIBILITY.md read this table; the versions are those of
`protocol/apis.py`. An API that is not in the table is not announced. A handler is a function
`handle(<its dependencies>, context, request)`; a row binds the dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.server.broker import Broker
from moldau.server.dispatch.audit import audited
from moldau.server.dispatch.context import Handler, ServedApi
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
    alter_user_scram_credentials,
    api_versions,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller_registration,
    create_acls,
    create_delegation_token,
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
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    expire_delegation_token,
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
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
    write_share_group_state,
    write_txn_markers,
)
from moldau.server.services import NodeServices
from moldau.server.settings import BROKER

if TYPE_CHECKING:
    from moldau.server.metrics.telemetry import ClientTelemetry

BROKER_APIS: dict[ApiKey, Callable[[Broker], Handler]] = {
    ApiKey.PRODUCE: lambda broker: partial(produce.handle, _produce(broker)),
    ApiKey.FETCH: lambda broker: partial(fetch.handle, _fetch(broker)),
    ApiKey.LIST_OFFSETS: lambda broker: partial(
        list_offsets.handle, broker.replicas, broker.services.pool, broker.remote_reads
    ),
    ApiKey.METADATA: lambda broker: partial(metadata.handle, _metadata(broker.services)),
    ApiKey.OFFSET_COMMIT: lambda broker: partial(
        offset_commit.handle, broker.coordinators.groups, broker.services.metadata
    ),
    ApiKey.OFFSET_FETCH: lambda broker: partial(
        offset_fetch.handle, broker.coordinators.groups, broker.services.metadata
    ),
    ApiKey.FIND_COORDINATOR: lambda broker: partial(
        find_coordinator.handle, broker.services.metadata, broker.coordinators.internal_topics
    ),
    ApiKey.JOIN_GROUP: lambda broker: partial(
        join_group.handle, broker.coordinators.groups, broker.services.settings
    ),
    ApiKey.HEARTBEAT: lambda broker: partial(heartbeat.handle, broker.coordinators.groups),
    ApiKey.LEAVE_GROUP: lambda broker: partial(leave_group.handle, broker.coordinators.groups),
    ApiKey.SYNC_GROUP: lambda broker: partial(sync_group.handle, broker.coordinators.groups),
    ApiKey.DESCRIBE_GROUPS: lambda broker: partial(describe_groups.handle, broker.coordinators.groups),
    ApiKey.LIST_GROUPS: lambda broker: partial(list_groups.handle, broker.coordinators.groups),
    ApiKey.SASL_HANDSHAKE: lambda broker: sasl_handshake.handle,
    ApiKey.SASL_AUTHENTICATE: lambda broker: sasl_authenticate.handle,
    ApiKey.API_VERSIONS: lambda broker: partial(
        api_versions.handle, broker.services.metadata, broker.services.quorum
    ),
    ApiKey.CREATE_TOPICS: lambda broker: partial(create_topics.handle, broker.services.controller),
    ApiKey.DELETE_TOPICS: lambda broker: partial(
        delete_topics.handle, broker.services.controller, broker.services.metadata
    ),
    ApiKey.DELETE_RECORDS: lambda broker: partial(delete_records.handle, broker.replicas),
    ApiKey.INIT_PRODUCER_ID: lambda broker: partial(
        init_producer_id.handle,
        broker.coordinators.transactions,
        broker.producer_ids,
        broker.services.settings,
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda broker: partial(offset_for_leader_epoch.handle, broker.replicas),
    ApiKey.ADD_PARTITIONS_TO_TXN: lambda broker: partial(
        add_partitions_to_txn.handle, broker.coordinators.transaction_partitions
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: lambda broker: partial(
        add_offsets_to_txn.handle,
        broker.coordinators.groups,
        broker.coordinators.transactions,
        broker.coordinators.internal_topics,
        broker.services.metadata,
    ),
    ApiKey.END_TXN: lambda broker: partial(end_txn.handle, broker.coordinators.transactions),
    ApiKey.WRITE_TXN_MARKERS: lambda broker: partial(
        write_txn_markers.handle, broker.coordinators.txn_marker_writer
    ),
    ApiKey.TXN_OFFSET_COMMIT: lambda broker: partial(
        txn_offset_commit.handle,
        broker.coordinators.groups,
        broker.services.metadata,
        broker.coordinators.transaction_verifier,
    ),
    ApiKey.DESCRIBE_ACLS: lambda broker: partial(describe_acls.handle, broker.services.metadata),
    ApiKey.CREATE_ACLS: lambda broker: partial(create_acls.handle, broker.services.controller),
    ApiKey.DELETE_ACLS: lambda broker: partial(delete_acls.handle, broker.services.controller),
    ApiKey.DESCRIBE_CONFIGS: lambda broker: partial(
        describe_configs.handle, broker.services.settings, broker.services.metadata
    ),
    ApiKey.ALTER_CONFIGS: lambda broker: partial(
        alter_configs.handle,
        broker.services.controller,
        broker.services.id,
        broker.services.store_changes,
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda broker: partial(alter_replica_log_dirs.handle, broker.logs),
    ApiKey.DESCRIBE_LOG_DIRS: lambda broker: partial(
        describe_log_dirs.handle, broker.logs, broker.services.pool, broker.services.disk
    ),
    ApiKey.CREATE_PARTITIONS: lambda broker: partial(create_partitions.handle, broker.services.controller),
    ApiKey.CREATE_DELEGATION_TOKEN: lambda broker: partial(
        create_delegation_token.handle, broker.services.controller
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: lambda broker: partial(
        renew_delegation_token.handle, broker.services.controller
    ),
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda broker: partial(
        expire_delegation_token.handle, broker.services.controller
    ),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda broker: partial(
        describe_delegation_token.handle, broker.services.metadata, broker.services.settings
    ),
    ApiKey.DELETE_GROUPS: lambda broker: partial(
        delete_groups.handle, broker.coordinators.groups, broker.coordinators.persister
    ),
    ApiKey.ELECT_LEADERS: lambda broker: partial(elect_leaders.handle, broker.services.controller),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda broker: partial(
        incremental_alter_configs.handle,
        broker.services.controller,
        broker.services.id,
        broker.services.store_changes,
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda broker: partial(
        alter_partition_reassignments.handle, broker.services.controller
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda broker: partial(
        list_partition_reassignments.handle, broker.services.controller
    ),
    ApiKey.OFFSET_DELETE: lambda broker: partial(
        offset_delete.handle, broker.coordinators.groups, broker.services.metadata
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda broker: partial(
        describe_client_quotas.handle, broker.services.metadata
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda broker: partial(
        alter_client_quotas.handle, broker.services.controller
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda broker: partial(
        describe_user_scram_credentials.handle, broker.services.metadata
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda broker: partial(
        alter_user_scram_credentials.handle, broker.services.controller
    ),
    ApiKey.DESCRIBE_QUORUM: lambda broker: partial(
        describe_quorum.handle, broker.services.controller, broker.services.quorum, broker.services.clock
    ),
    ApiKey.UPDATE_FEATURES: lambda broker: partial(update_features.handle, broker.services.controller),
    ApiKey.DESCRIBE_CLUSTER: lambda broker: partial(
        describe_cluster.handle,
        broker.services.identity,
        broker.services.metadata,
        broker.services.quorum,
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda broker: partial(describe_producers.handle, broker.replicas),
    ApiKey.UNREGISTER_BROKER: lambda broker: partial(unregister_broker.handle, broker.services.controller),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda broker: partial(
        describe_transactions.handle, broker.coordinators.transactions
    ),
    ApiKey.LIST_TRANSACTIONS: lambda broker: partial(
        list_transactions.handle, broker.coordinators.transactions
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda broker: partial(
        consumer_group_heartbeat.handle,
        broker.coordinators.groups,
        broker.services.settings,
        broker.services.metadata,
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda broker: partial(
        consumer_group_describe.handle,
        broker.coordinators.groups,
        broker.services.settings,
        broker.services.metadata,
    ),
    ApiKey.LIST_CONFIG_RESOURCES: lambda broker: partial(
        list_config_resources.handle, broker.services.metadata
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda broker: partial(
        describe_topic_partitions.handle, broker.services.metadata, broker.services.settings
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda broker: partial(
        share_group_heartbeat.handle, broker.coordinators.groups, broker.share_group_configs
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: lambda broker: partial(
        share_group_describe.handle, broker.coordinators.groups, broker.share_group_configs
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: lambda broker: partial(
        streams_group_heartbeat.handle,
        broker.coordinators.groups,
        broker.coordinators.streams_topics,
        broker.services.settings,
        broker.services.metadata,
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda broker: partial(
        streams_group_describe.handle,
        broker.coordinators.groups,
        broker.services.settings,
        broker.services.metadata,
    ),
    ApiKey.SHARE_FETCH: lambda broker: partial(share_fetch.handle, _share_fetch(broker)),
    ApiKey.SHARE_ACKNOWLEDGE: lambda broker: partial(
        share_acknowledge.handle,
        broker.share_partitions,
        broker.share_group_configs,
        broker.services.metadata,
    ),
    ApiKey.ADD_RAFT_VOTER: lambda broker: partial(
        add_raft_voter.handle, broker.services.controller, broker.services.quorum
    ),
    ApiKey.REMOVE_RAFT_VOTER: lambda broker: partial(
        remove_raft_voter.handle, broker.services.controller, broker.services.quorum
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: lambda broker: partial(
        initialize_share_group_state.handle, broker.coordinators.share
    ),
    ApiKey.READ_SHARE_GROUP_STATE: lambda broker: partial(
        read_share_group_state.handle, broker.coordinators.share
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: lambda broker: partial(
        write_share_group_state.handle, broker.coordinators.share
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: lambda broker: partial(
        delete_share_group_state.handle, broker.coordinators.share
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda broker: partial(
        read_share_group_state_summary.handle, broker.coordinators.share
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda broker: partial(
        describe_share_group_offsets.handle, _describe_share_group_offsets(broker)
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: lambda broker: partial(
        alter_share_group_offsets.handle,
        broker.coordinators.groups,
        broker.coordinators.persister,
        broker.share_group_configs,
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: lambda broker: partial(
        delete_share_group_offsets.handle,
        broker.coordinators.groups,
        broker.coordinators.persister,
        broker.share_group_configs,
        broker.services.metadata,
    ),
}

CONTROLLER_APIS: dict[ApiKey, Callable[[NodeServices], Handler]] = {
    ApiKey.FETCH: lambda node: partial(fetch_metadata.handle, node.quorum),
    ApiKey.SASL_HANDSHAKE: lambda node: sasl_handshake.handle,
    ApiKey.SASL_AUTHENTICATE: lambda node: sasl_authenticate.handle,
    ApiKey.API_VERSIONS: lambda node: partial(api_versions.handle, node.metadata, node.quorum),
    ApiKey.CREATE_TOPICS: lambda node: partial(create_topics.handle, node.controller),
    ApiKey.DELETE_TOPICS: lambda node: partial(delete_topics.handle, node.controller, node.metadata),
    ApiKey.DESCRIBE_ACLS: lambda node: partial(describe_acls.handle, node.metadata),
    ApiKey.CREATE_ACLS: lambda node: partial(create_acls.handle, node.controller),
    ApiKey.DELETE_ACLS: lambda node: partial(delete_acls.handle, node.controller),
    ApiKey.DESCRIBE_CONFIGS: lambda node: partial(describe_configs.handle, node.settings, node.metadata),
    ApiKey.ALTER_CONFIGS: lambda node: partial(
        alter_configs.handle, node.controller, node.id, node.store_changes
    ),
    ApiKey.CREATE_PARTITIONS: lambda node: partial(create_partitions.handle, node.controller),
    ApiKey.CREATE_DELEGATION_TOKEN: lambda node: partial(create_delegation_token.handle, node.controller),
    ApiKey.RENEW_DELEGATION_TOKEN: lambda node: partial(renew_delegation_token.handle, node.controller),
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda node: partial(expire_delegation_token.handle, node.controller),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda node: partial(
        describe_delegation_token.handle, node.metadata, node.settings
    ),
    ApiKey.ELECT_LEADERS: lambda node: partial(elect_leaders.handle, node.controller),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda node: partial(
        incremental_alter_configs.handle, node.controller, node.id, node.store_changes
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda node: partial(
        alter_partition_reassignments.handle, node.controller
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda node: partial(
        list_partition_reassignments.handle, node.controller
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda node: partial(alter_client_quotas.handle, node.controller),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda node: partial(
        describe_user_scram_credentials.handle, node.metadata
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda node: partial(
        alter_user_scram_credentials.handle, node.controller
    ),
    ApiKey.VOTE: lambda node: partial(vote.handle, node.quorum),
    ApiKey.BEGIN_QUORUM_EPOCH: lambda node: partial(begin_quorum_epoch.handle, node.quorum),
    ApiKey.END_QUORUM_EPOCH: lambda node: partial(end_quorum_epoch.handle, node.quorum),
    ApiKey.DESCRIBE_QUORUM: lambda node: partial(
        describe_quorum.handle, node.controller, node.quorum, node.clock
    ),
    ApiKey.ALTER_PARTITION: lambda node: partial(alter_partition.handle, node.local_controller),
    ApiKey.UPDATE_FEATURES: lambda node: partial(update_features.handle, node.controller),
    ApiKey.ENVELOPE: lambda node: envelope.handle,
    ApiKey.FETCH_SNAPSHOT: lambda node: partial(fetch_snapshot.handle, node.quorum),
    ApiKey.DESCRIBE_CLUSTER: lambda node: partial(
        describe_cluster.handle, node.identity, node.metadata, node.quorum
    ),
    ApiKey.BROKER_REGISTRATION: lambda node: partial(broker_registration.handle, node.local_controller),
    ApiKey.BROKER_HEARTBEAT: lambda node: partial(
        broker_heartbeat.handle, node.local_controller, node.failure_detector
    ),
    ApiKey.UNREGISTER_BROKER: lambda node: partial(unregister_broker.handle, node.controller),
    ApiKey.ALLOCATE_PRODUCER_IDS: lambda node: partial(allocate_producer_ids.handle, node.local_controller),
    ApiKey.CONTROLLER_REGISTRATION: lambda node: partial(
        controller_registration.handle, node.local_controller
    ),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda node: partial(
        assign_replicas_to_dirs.handle, node.local_controller
    ),
    ApiKey.ADD_RAFT_VOTER: lambda node: partial(add_raft_voter.handle, node.controller, node.quorum),
    ApiKey.REMOVE_RAFT_VOTER: lambda node: partial(remove_raft_voter.handle, node.controller, node.quorum),
    ApiKey.UPDATE_RAFT_VOTER: lambda node: partial(update_raft_voter.handle, node.quorum),
}


#: APIs of client telemetry, on broker listeners of nodes that receive it. The handlers are imported then.
TELEMETRY_APIS = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)


def served_apis(role: str, *, unstable: bool = False, telemetry: bool = False) -> dict[int, ServedApi]:
    """Return the APIs that listeners of a role serve."""
    keys: Iterable[ApiKey] = BROKER_APIS if role == BROKER else CONTROLLER_APIS
    if telemetry and role == BROKER:
        keys = (*keys, *TELEMETRY_APIS)
    return {key: ServedApi(APIS[key], role, unstable) for key in keys}


def broker_handlers(broker: Broker) -> dict[int, Handler]:
    handlers: dict[int, Handler] = {key: bind(broker) for key, bind in BROKER_APIS.items()}
    if broker.telemetry is not None:
        handlers.update(telemetry_handlers(broker.telemetry))
    if broker.tracing is not None:
        handlers = broker.tracing.traced(handlers)
    return audited(handlers)


def telemetry_handlers(telemetry: ClientTelemetry) -> dict[int, Handler]:
    from moldau.server.handlers import get_telemetry_subscriptions, push_telemetry

    return {
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: partial(get_telemetry_subscriptions.handle, telemetry),
        ApiKey.PUSH_TELEMETRY: partial(push_telemetry.handle, telemetry),
    }


def controller_handlers(services: NodeServices) -> dict[int, Handler]:
    return audited({key: bind(services) for key, bind in CONTROLLER_APIS.items()})


# Handlers with many dependencies.


def _produce(broker: Broker) -> produce.Dependencies:
    services = broker.services
    return produce.Dependencies(
        replicas=broker.replicas,
        pool=services.pool,
        metadata=services.metadata,
        verifier=broker.coordinators.transaction_verifier,
        schemas=broker.schemas,
    )


def _fetch(broker: Broker) -> fetch.Dependencies:
    services = broker.services
    return fetch.Dependencies(
        replicas=broker.replicas,
        sessions=broker.fetch_sessions,
        pool=services.pool,
        clock=services.clock,
        settings=services.settings,
        metadata=services.metadata,
        limits=services.limits,
        quotas=services.quotas,
        remote=broker.remote_reads,
    )


def _metadata(services: NodeServices) -> metadata.Dependencies:
    return metadata.Dependencies(
        identity=services.identity,
        metadata=services.metadata,
        settings=services.settings,
        controller=services.controller,
        suspected_brokers=services.suspected_brokers,
    )


def _share_fetch(broker: Broker) -> share_fetch.Dependencies:
    services = broker.services
    return share_fetch.Dependencies(
        share_partitions=broker.share_partitions,
        share_configs=broker.share_group_configs,
        replicas=broker.replicas,
        metadata=services.metadata,
        settings=services.settings,
        pool=services.pool,
        quotas=services.quotas,
        clock=services.clock,
        remote=broker.remote_reads,
    )


def _describe_share_group_offsets(broker: Broker) -> describe_share_group_offsets.Dependencies:
    return describe_share_group_offsets.Dependencies(
        groups=broker.coordinators.groups,
        persister=broker.coordinators.persister,
        high_watermarks=broker.coordinators.high_watermarks,
        share_configs=broker.share_group_configs,
        metadata=broker.services.metadata,
    )
