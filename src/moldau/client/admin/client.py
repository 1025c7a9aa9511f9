"""The admin client: all administrative operations on a cluster, over our own protocol code.

`AsyncAdminClient` is for code that runs on an event loop. `AdminClient` has the same methods without `await`.

    with AdminClient("localhost:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=3)])

An operation on several resources returns one entry for each, a result or a `KafkaError`; `checked` raises
the first error. The operations are functions of a `Cluster` in the modules of this package, grouped by
resource; the two classes bind them as methods.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from moldau.base.errors import KafkaError
from moldau.client.admin import (
    acls,
    configs,
    delegation_tokens,
    features,
    groups,
    nodes,
    offsets,
    quorum,
    quotas,
    reassignments,
    scram,
    topics,
    transactions,
)
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.loop_thread import LoopThread
from moldau.client.wire.settings import ClientSettings, parse_addresses

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")


def _async(
    operation: Callable[Concatenate[Cluster, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[AsyncAdminClient, P], Coroutine[Any, Any, R]]:
    @functools.wraps(operation)
    async def method(self: AsyncAdminClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await operation(self.cluster, *args, **kwargs)

    return method


def _blocking(
    operation: Callable[Concatenate[Cluster, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[AdminClient, P], R]:
    @functools.wraps(operation)
    def method(self: AdminClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(operation(self.client.cluster, *args, **kwargs))

    return method


#: The addresses of a cluster, properties by Kafka's names, or parsed settings.
Where = str | Mapping[str, Any] | ClientSettings


def _settings(where: Where) -> ClientSettings:
    if isinstance(where, ClientSettings):
        return where
    if isinstance(where, str):
        return ClientSettings(parse_addresses(where))
    return ClientSettings.from_properties({name: str(value) for name, value in where.items()})


class AsyncAdminClient:
    """Connects when first used. Close it, or use it in an `async with`."""

    def __init__(self, where: Where, *, request_timeout_ms: int | None = None) -> None:
        """`request_timeout_ms` is used if it is less than that of the settings."""
        settings = _settings(where)
        if request_timeout_ms is not None and request_timeout_ms < settings.request_timeout_ms:
            settings = replace(settings, request_timeout_ms=request_timeout_ms)
        self.cluster = Cluster(settings)

    async def close(self) -> None:
        self.cluster.close()

    async def __aenter__(self) -> AsyncAdminClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    list_topics = _async(topics.list_topics)
    describe_topics = _async(topics.describe_topics)
    describe_topic_ids = _async(topics.describe_topic_ids)
    ensure_topic = _async(topics.ensure_topic)
    create_topics = _async(topics.create_topics)
    delete_topics = _async(topics.delete_topics)
    create_partitions = _async(topics.create_partitions)

    list_partition_reassignments = _async(reassignments.list_partition_reassignments)
    alter_partition_reassignments = _async(reassignments.alter_partition_reassignments)
    elect_leaders = _async(reassignments.elect_leaders)
    describe_replica_log_dirs = _async(reassignments.describe_replica_log_dirs)
    alter_replica_log_dirs = _async(reassignments.alter_replica_log_dirs)

    describe_configs = _async(configs.describe_configs)
    incremental_alter_configs = _async(configs.incremental_alter_configs)
    list_config_resources = _async(configs.list_config_resources)

    describe_acls = _async(acls.describe_acls)
    create_acls = _async(acls.create_acls)
    delete_acls = _async(acls.delete_acls)

    describe_client_quotas = _async(quotas.describe_client_quotas)
    alter_client_quotas = _async(quotas.alter_client_quotas)
    describe_user_scram_credentials = _async(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = _async(scram.alter_user_scram_credentials)

    create_delegation_token = _async(delegation_tokens.create_delegation_token)
    renew_delegation_token = _async(delegation_tokens.renew_delegation_token)
    expire_delegation_token = _async(delegation_tokens.expire_delegation_token)
    describe_delegation_token = _async(delegation_tokens.describe_delegation_token)

    list_offsets = _async(offsets.list_offsets)
    delete_records = _async(offsets.delete_records)

    describe_cluster = _async(nodes.describe_cluster)
    describe_log_dirs = _async(nodes.describe_log_dirs)
    node_versions = _async(nodes.node_versions)
    unregister_broker = _async(nodes.unregister_broker)

    describe_metadata_quorum = _async(quorum.describe_metadata_quorum)
    add_raft_voter = _async(quorum.add_raft_voter)
    remove_raft_voter = _async(quorum.remove_raft_voter)

    describe_features = _async(features.describe_features)
    update_features = _async(features.update_features)

    list_groups = _async(groups.list_groups)
    describe_groups = _async(groups.describe_groups)
    list_group_offsets = _async(groups.list_group_offsets)
    alter_group_offsets = _async(groups.alter_group_offsets)
    delete_group_offsets = _async(groups.delete_group_offsets)
    delete_groups = _async(groups.delete_groups)
    remove_members_from_group = _async(groups.remove_members_from_group)

    list_transactions = _async(transactions.list_transactions)
    describe_transactions = _async(transactions.describe_transactions)
    describe_producers = _async(transactions.describe_producers)
    abort_transaction = _async(transactions.abort_transaction)
    fence_producers = _async(transactions.fence_producers)


class AdminClient:
    """The admin client without `await`. Its event loop runs in a thread of its own."""

    def __init__(self, where: Where) -> None:
        self.client = AsyncAdminClient(where)
        self._thread = LoopThread("moldau-admin")

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the client's loop and return its result."""
        return self._thread.run(work)

    def close(self) -> None:
        if not self._thread.closed:
            self.run(self.client.close())
            self._thread.close()

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    list_topics = _blocking(topics.list_topics)
    describe_topics = _blocking(topics.describe_topics)
    describe_topic_ids = _blocking(topics.describe_topic_ids)
    ensure_topic = _blocking(topics.ensure_topic)
    create_topics = _blocking(topics.create_topics)
    delete_topics = _blocking(topics.delete_topics)
    create_partitions = _blocking(topics.create_partitions)

    list_partition_reassignments = _blocking(reassignments.list_partition_reassignments)
    alter_partition_reassignments = _blocking(reassignments.alter_partition_reassignments)
    elect_leaders = _blocking(reassignments.elect_leaders)
    describe_replica_log_dirs = _blocking(reassignments.describe_replica_log_dirs)
    alter_replica_log_dirs = _blocking(reassignments.alter_replica_log_dirs)

    describe_configs = _blocking(configs.describe_configs)
    incremental_alter_configs = _blocking(configs.incremental_alter_configs)
    list_config_resources = _blocking(configs.list_config_resources)

    describe_acls = _blocking(acls.describe_acls)
    create_acls = _blocking(acls.create_acls)
    delete_acls = _blocking(acls.delete_acls)

    describe_client_quotas = _blocking(quotas.describe_client_quotas)
    alter_client_quotas = _blocking(quotas.alter_client_quotas)
    describe_user_scram_credentials = _blocking(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = _blocking(scram.alter_user_scram_credentials)

    create_delegation_token = _blocking(delegation_tokens.create_delegation_token)
    renew_delegation_token = _blocking(delegation_tokens.renew_delegation_token)
    expire_delegation_token = _blocking(delegation_tokens.expire_delegation_token)
    describe_delegation_token = _blocking(delegation_tokens.describe_delegation_token)

    list_offsets = _blocking(offsets.list_offsets)
    delete_records = _blocking(offsets.delete_records)

    describe_cluster = _blocking(nodes.describe_cluster)
    describe_log_dirs = _blocking(nodes.describe_log_dirs)
    node_versions = _blocking(nodes.node_versions)
    unregister_broker = _blocking(nodes.unregister_broker)

    describe_metadata_quorum = _blocking(quorum.describe_metadata_quorum)
    add_raft_voter = _blocking(quorum.add_raft_voter)
    remove_raft_voter = _blocking(quorum.remove_raft_voter)

    describe_features = _blocking(features.describe_features)
    update_features = _blocking(features.update_features)

    list_groups = _blocking(groups.list_groups)
    describe_groups = _blocking(groups.describe_groups)
    list_group_offsets = _blocking(groups.list_group_offsets)
    alter_group_offsets = _blocking(groups.alter_group_offsets)
    delete_group_offsets = _blocking(groups.delete_group_offsets)
    delete_groups = _blocking(groups.delete_groups)
    remove_members_from_group = _blocking(groups.remove_members_from_group)

    list_transactions = _blocking(transactions.list_transactions)
    describe_transactions = _blocking(transactions.describe_transactions)
    describe_producers = _blocking(transactions.describe_producers)
    abort_transaction = _blocking(transactions.abort_transaction)
    fence_producers = _blocking(transactions.fence_producers)


def checked(results: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """Return the results of an operation on several resources; raise the first error among them."""
    good: dict[K, V] = {}
    for key, result in results.items():
        if isinstance(result, KafkaError):
            raise result
        good[key] = result
    return good
