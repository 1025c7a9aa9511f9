"""The admin client: everything the tools do to a cluster, over our own protocol code.

`AsyncAdminClient` is the thing itself, for code that lives on an event loop. `AdminClient` is the same for
everyone else: each method has the same name and arguments, and returns when the answer is there.

    with AdminClient("localhost:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=3)])

Calls about several things return one entry per thing, a result or a `KafkaError`; `checked` raises the first.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from moldau.base.errors import KafkaError
from moldau.client.admin.configs import ConfigAdmin
from moldau.client.admin.features import FeatureAdmin
from moldau.client.admin.groups import GroupAdmin
from moldau.client.admin.nodes import NodeAdmin
from moldau.client.admin.offsets import OffsetAdmin
from moldau.client.admin.quorum import QuorumAdmin
from moldau.client.admin.quotas import QuotaAdmin
from moldau.client.admin.reassignments import ReassignmentAdmin
from moldau.client.admin.topics import TopicAdmin
from moldau.client.admin.transactions import TransactionAdmin
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.loop_thread import LoopThread
from moldau.client.wire.settings import ClientSettings, parse_addresses

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")


class AsyncAdminClient(
    TopicAdmin,
    ReassignmentAdmin,
    ConfigAdmin,
    QuotaAdmin,
    OffsetAdmin,
    NodeAdmin,
    QuorumAdmin,
    FeatureAdmin,
    GroupAdmin,
    TransactionAdmin,
):
    """Connects when first used. Close it, or use it in an `async with`."""

    def __init__(self, where: str | ClientSettings) -> None:
        settings = where if isinstance(where, ClientSettings) else ClientSettings(parse_addresses(where))
        self.cluster = Cluster(settings)

    async def close(self) -> None:
        self.cluster.close()

    async def __aenter__(self) -> AsyncAdminClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _blocking(
    method: Callable[Concatenate[AsyncAdminClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[AdminClient, P], R]:
    def call(self: AdminClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(method(self.client, *args, **kwargs))

    call.__name__ = method.__name__
    call.__doc__ = method.__doc__
    return call


class AdminClient:
    """The admin client without `await`. Its loop runs in a thread of its own, so it works anywhere."""

    def __init__(self, where: str | ClientSettings) -> None:
        self.client = AsyncAdminClient(where)
        self._thread = LoopThread("moldau-admin")

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the client's loop and wait for it."""
        return self._thread.run(work)

    def close(self) -> None:
        if not self._thread.closed:
            self.run(self.client.close())
            self._thread.close()

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    list_topics = _blocking(AsyncAdminClient.list_topics)
    describe_topics = _blocking(AsyncAdminClient.describe_topics)
    describe_topic_ids = _blocking(AsyncAdminClient.describe_topic_ids)
    ensure_topic = _blocking(AsyncAdminClient.ensure_topic)
    create_topics = _blocking(AsyncAdminClient.create_topics)
    delete_topics = _blocking(AsyncAdminClient.delete_topics)
    create_partitions = _blocking(AsyncAdminClient.create_partitions)
    list_partition_reassignments = _blocking(AsyncAdminClient.list_partition_reassignments)
    describe_configs = _blocking(AsyncAdminClient.describe_configs)
    incremental_alter_configs = _blocking(AsyncAdminClient.incremental_alter_configs)
    list_config_resources = _blocking(AsyncAdminClient.list_config_resources)
    describe_client_quotas = _blocking(AsyncAdminClient.describe_client_quotas)
    alter_client_quotas = _blocking(AsyncAdminClient.alter_client_quotas)
    describe_user_scram_credentials = _blocking(AsyncAdminClient.describe_user_scram_credentials)
    alter_user_scram_credentials = _blocking(AsyncAdminClient.alter_user_scram_credentials)
    list_offsets = _blocking(AsyncAdminClient.list_offsets)
    delete_records = _blocking(AsyncAdminClient.delete_records)
    describe_cluster = _blocking(AsyncAdminClient.describe_cluster)
    describe_log_dirs = _blocking(AsyncAdminClient.describe_log_dirs)
    node_versions = _blocking(AsyncAdminClient.node_versions)
    list_groups = _blocking(AsyncAdminClient.list_groups)
    describe_groups = _blocking(AsyncAdminClient.describe_groups)
    list_group_offsets = _blocking(AsyncAdminClient.list_group_offsets)
    alter_group_offsets = _blocking(AsyncAdminClient.alter_group_offsets)
    delete_group_offsets = _blocking(AsyncAdminClient.delete_group_offsets)
    delete_groups = _blocking(AsyncAdminClient.delete_groups)
    remove_members_from_group = _blocking(AsyncAdminClient.remove_members_from_group)
    list_transactions = _blocking(AsyncAdminClient.list_transactions)
    describe_transactions = _blocking(AsyncAdminClient.describe_transactions)
    describe_producers = _blocking(AsyncAdminClient.describe_producers)
    abort_transaction = _blocking(AsyncAdminClient.abort_transaction)
    fence_producers = _blocking(AsyncAdminClient.fence_producers)
    unregister_broker = _blocking(AsyncAdminClient.unregister_broker)
    alter_partition_reassignments = _blocking(AsyncAdminClient.alter_partition_reassignments)
    elect_leaders = _blocking(AsyncAdminClient.elect_leaders)
    describe_replica_log_dirs = _blocking(AsyncAdminClient.describe_replica_log_dirs)
    alter_replica_log_dirs = _blocking(AsyncAdminClient.alter_replica_log_dirs)
    describe_metadata_quorum = _blocking(AsyncAdminClient.describe_metadata_quorum)
    add_raft_voter = _blocking(AsyncAdminClient.add_raft_voter)
    remove_raft_voter = _blocking(AsyncAdminClient.remove_raft_voter)
    describe_features = _blocking(AsyncAdminClient.describe_features)
    update_features = _blocking(AsyncAdminClient.update_features)


def checked(results: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """The results of a call about several things; the first error is raised."""
    good: dict[K, V] = {}
    for key, result in results.items():
        if isinstance(result, KafkaError):
            raise result
        good[key] = result
    return good
