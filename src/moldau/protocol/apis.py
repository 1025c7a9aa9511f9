"""The table of all APIs of Kafka 4.3: key, versions, first flexible version, listeners that serve it.

The table states which APIs exist; `moldau.server` decides which of them a node serves and announces.
Importing the table imports no message class: `Api.request` and `Api.response` import theirs on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from moldau.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from moldau.protocol.schema import Message


class Api:
    """One API. `flexible_from` is None if no version is flexible; `latest_unstable` marks `max_version`.

    The name on the wire and the module of the messages follow from the key: `ApiKey.END_TXN` is `EndTxn`,
    declared in `messages/end_txn.py`.
    """

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
        key: ApiKey,
        min_version: int,
        max_version: int,
        flexible_from: int | None,
        listeners: frozenset[str],
        *,
        latest_unstable: bool = False,
    ) -> None:
        self.key = key
        self.module = key.name.lower()
        self.name = "".join(word.capitalize() for word in self.module.split("_"))
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
    Api(ApiKey.PRODUCE, 3, 13, 9, _BROKER),
    Api(ApiKey.FETCH, 4, 18, 12, _BOTH),
    Api(ApiKey.LIST_OFFSETS, 1, 11, 6, _BROKER),
    Api(ApiKey.METADATA, 0, 13, 9, _BROKER),
    Api(ApiKey.OFFSET_COMMIT, 2, 10, 8, _BROKER),
    Api(ApiKey.OFFSET_FETCH, 1, 10, 6, _BROKER),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, 3, _BROKER),
    Api(ApiKey.JOIN_GROUP, 0, 9, 6, _BROKER),
    Api(ApiKey.HEARTBEAT, 0, 4, 4, _BROKER),
    Api(ApiKey.LEAVE_GROUP, 0, 5, 4, _BROKER),
    Api(ApiKey.SYNC_GROUP, 0, 5, 4, _BROKER),
    Api(ApiKey.DESCRIBE_GROUPS, 0, 6, 5, _BROKER),
    Api(ApiKey.LIST_GROUPS, 0, 5, 3, _BROKER),
    Api(ApiKey.SASL_HANDSHAKE, 0, 1, None, _BOTH),
    Api(ApiKey.API_VERSIONS, 0, 4, 3, _BOTH),
    Api(ApiKey.CREATE_TOPICS, 2, 7, 5, _BOTH),
    Api(ApiKey.DELETE_TOPICS, 1, 6, 4, _BOTH),
    Api(ApiKey.DELETE_RECORDS, 0, 2, 2, _BROKER),
    Api(ApiKey.INIT_PRODUCER_ID, 0, 6, 2, _BROKER, latest_unstable=True),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4, _BROKER),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3, _BROKER),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3, _BROKER),
    Api(ApiKey.END_TXN, 0, 5, 3, _BROKER),
    Api(ApiKey.WRITE_TXN_MARKERS, 1, 2, 1, _BROKER),
    Api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, 3, _BROKER),
    Api(ApiKey.DESCRIBE_ACLS, 1, 3, 2, _BOTH),
    Api(ApiKey.CREATE_ACLS, 1, 3, 2, _BOTH),
    Api(ApiKey.DELETE_ACLS, 1, 3, 2, _BOTH),
    Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4, _BOTH),
    Api(ApiKey.ALTER_CONFIGS, 0, 2, 2, _BOTH),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 2, _BROKER),
    Api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, 2, _BROKER),
    Api(ApiKey.SASL_AUTHENTICATE, 0, 2, 2, _BOTH),
    Api(ApiKey.CREATE_PARTITIONS, 0, 3, 2, _BOTH),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 2, _BOTH),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 2, _BOTH),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 2, _BOTH),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 2, _BOTH),
    Api(ApiKey.DELETE_GROUPS, 0, 2, 2, _BROKER),
    Api(ApiKey.ELECT_LEADERS, 0, 2, 2, _BOTH),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1, _BOTH),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0, _BOTH),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0, _BOTH),
    Api(ApiKey.OFFSET_DELETE, 0, 0, None, _BROKER),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1, _BROKER),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1, _BOTH),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0, _BOTH),
    Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0, _BOTH),
    Api(ApiKey.VOTE, 0, 2, 0, _CONTROLLER),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, 0, 1, 1, _CONTROLLER),
    Api(ApiKey.END_QUORUM_EPOCH, 0, 1, 1, _CONTROLLER),
    Api(ApiKey.DESCRIBE_QUORUM, 0, 2, 0, _BOTH),
    Api(ApiKey.ALTER_PARTITION, 2, 3, 0, _CONTROLLER),
    Api(ApiKey.UPDATE_FEATURES, 0, 2, 0, _BOTH),
    Api(ApiKey.ENVELOPE, 0, 0, 0, _CONTROLLER),
    Api(ApiKey.FETCH_SNAPSHOT, 0, 1, 0, _CONTROLLER),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, _BOTH),
    Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0, _BROKER),
    Api(ApiKey.BROKER_REGISTRATION, 0, 4, 0, _CONTROLLER),
    Api(ApiKey.BROKER_HEARTBEAT, 0, 2, 0, _CONTROLLER),
    Api(ApiKey.UNREGISTER_BROKER, 0, 0, 0, _BOTH),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0, _BROKER),
    Api(ApiKey.LIST_TRANSACTIONS, 0, 2, 0, _BROKER),
    Api(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, 0, _CONTROLLER),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0, _BROKER),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0, _BROKER),
    Api(ApiKey.CONTROLLER_REGISTRATION, 0, 0, 0, _CONTROLLER),
    Api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, 0, _BROKER),
    Api(ApiKey.PUSH_TELEMETRY, 0, 0, 0, _BROKER),
    Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, 0, _CONTROLLER),
    Api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0, _BROKER),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0, _BROKER),
    Api(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, 0, _BROKER),
    Api(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, 0, _BROKER),
    Api(ApiKey.SHARE_FETCH, 1, 2, 0, _BROKER),
    Api(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, 0, _BROKER),
    Api(ApiKey.ADD_RAFT_VOTER, 0, 1, 0, _BOTH),
    Api(ApiKey.REMOVE_RAFT_VOTER, 0, 0, 0, _BOTH),
    Api(ApiKey.UPDATE_RAFT_VOTER, 0, 0, 0, _CONTROLLER),
    Api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, 0, _BROKER),
    Api(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, 0, _BROKER),
    Api(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, 0, _BROKER),
    Api(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, 0, _BROKER),
    Api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, 0, _BROKER),
    Api(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, 0, _BROKER),
    Api(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, 0, _BROKER),
    Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, 0, _BROKER),
    Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, 0, _BROKER),
    Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, 0, _BROKER),
)

#: By plain integers, as they are read from request headers.
APIS: dict[int, Api] = {int(api.key): api for api in _TABLE}
api_by_name: dict[str, Api] = {api.name: api for api in _TABLE}
