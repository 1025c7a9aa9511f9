"""The routes of v3: the operations of Confluent's, and reading records, which is Moldau's own."""

from __future__ import annotations

from typing import Final

from moldau.rest.routing import Handler, Parameter, Route
from moldau.rest.v3 import acls, clusters, configs, groups, lags, partitions, topics
from moldau.rest.v3.reading import commits, group, topic
from moldau.rest.v3.reading.formats import MEDIA_TYPES
from moldau.rest.v3.records import batch, produce

JSON: Final = ("application/json",)
_CLUSTER: Final = "/v3/clusters/{cluster_id}"
_ACLS: Final = f"{_CLUSTER}/acls"
_BROKERS: Final = f"{_CLUSTER}/brokers"
_BROKER: Final = f"{_BROKERS}/{{broker_id}}"
_BROKER_CONFIGS: Final = f"{_CLUSTER}/broker-configs"
_GROUPS: Final = f"{_CLUSTER}/consumer-groups"
_GROUP: Final = f"{_GROUPS}/{{consumer_group_id}}"
_CONSUMER: Final = f"{_GROUP}/consumers/{{consumer_id}}"
_TOPICS: Final = f"{_CLUSTER}/topics"
_TOPIC: Final = f"{_TOPICS}/{{topic_name}}"
_PARTITION: Final = f"{_TOPIC}/partitions/{{partition_id}}"
_OF_PARTITION: Final = "{topic_name}/partitions/{partition_id}"

_ACL_FILTER: Final = (
    Parameter("resource_type", "UNKNOWN, ANY, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID or DELEGATION_TOKEN."),
    Parameter("resource_name", "Name of the resource."),
    Parameter("pattern_type", "ANY, MATCH, LITERAL or PREFIXED."),
    Parameter("principal", "Principal, such as `User:ann`."),
    Parameter("host", "Host, or `*`."),
    Parameter("operation", "ANY, ALL, READ, WRITE, CREATE, and so on."),
    Parameter("permission", "ANY, DENY or ALLOW."),
)
_OPERATIONS: Final = Parameter(
    "include_authorized_operations", "true: list what the caller may do with a topic.", "boolean"
)
_TYPES: Final = (
    Parameter("key_type", "Type of keys: AUTO (default), BINARY, STRING, JSON or SCHEMA."),
    Parameter("value_type", "Type of values: AUTO (default), BINARY, STRING, JSON or SCHEMA."),
    Parameter("limit", "End after this many records.", "integer"),
    Parameter("max_wait_ms", "End after this time without a new record.", "integer"),
)
_FOLLOW: Final = Parameter(
    "follow", "true: wait for new records; otherwise end where the log ended at the request.", "boolean"
)
_READ_TOPIC: Final = (
    Parameter(
        "from", "Where to begin: earliest (default) or latest; a group begins at its committed offsets."
    ),
    Parameter("offsets", "First offset by partition, such as `0:120,3:7`; other partitions as `from` says."),
    Parameter("timestamp", "First record at or after this time: ISO 8601, or milliseconds since 1970."),
    _FOLLOW,
    *_TYPES,
)
_READ_PARTITION: Final = (
    Parameter("from", "earliest (default) or latest."),
    Parameter("offset", "First offset.", "integer"),
    Parameter("timestamp", "First record at or after this time: ISO 8601, or milliseconds since 1970."),
    _FOLLOW,
    *_TYPES,
)
_READ_GROUP: Final = (
    Parameter("topics", "Names of topics, separated by commas."),
    Parameter("pattern", "Regular expression for names of topics, instead of `topics`."),
    Parameter("from", "Where to begin without a committed offset: earliest (default) or latest."),
    *_TYPES,
)


def _list(path: str, summary: str, handler: Handler, query: tuple[Parameter, ...] = ()) -> Route:
    return Route("GET", path, summary, handler, query=query, response="Collection")


def _get(path: str, summary: str, handler: Handler, query: tuple[Parameter, ...] = ()) -> Route:
    return Route("GET", path, summary, handler, query=query, response="Resource")


def _write(method: str, path: str, summary: str, handler: Handler, body: str, **other: object) -> Route:
    return Route(method, path, summary, handler, body=body, consumes=JSON, **{"status": 204, **other})  # type: ignore[arg-type]


def _read(path: str, summary: str, handler: Handler, query: tuple[Parameter, ...]) -> Route:
    return Route(
        "GET", path, summary, handler, query=query, response="ConsumedRecord", produces=tuple(MEDIA_TYPES)
    )


_CLUSTER_ROUTES: Final = (
    _list("/v3/clusters", "List Clusters", clusters.list_clusters),
    _get(_CLUSTER, "Get Cluster", clusters.get_cluster),
    _list(_BROKERS, "List Brokers", clusters.list_brokers),
    _get(_BROKER, "Get Broker", clusters.get_broker),
    _list(f"{_BROKER}/partition-replicas", "List Replicas by Broker", partitions.list_replicas_of_broker),
    _list(_ACLS, "Search ACLs", acls.search, _ACL_FILTER),
    _write("POST", _ACLS, "Create an ACL", acls.create, "Acl", status=201),
    _write("POST", f"{_ACLS}:batch", "Batch Create ACLs", acls.create_batch, "AclBatch", status=201),
    Route("DELETE", _ACLS, "Delete ACLs", acls.delete, query=_ACL_FILTER, response="AclList"),
)
_CONFIG_ROUTES: Final = (
    _list(_BROKER_CONFIGS, "List Cluster Configs", configs.list_configs),
    _write("POST", f"{_BROKER_CONFIGS}:alter", "Batch Alter Cluster Configs", configs.alter_configs, "Alter"),
    _get(f"{_BROKER_CONFIGS}/{{name}}", "Get Cluster Config", configs.get_config),
    _write("PUT", f"{_BROKER_CONFIGS}/{{name}}", "Update Cluster Config", configs.update_config, "Config"),
    Route("DELETE", f"{_BROKER_CONFIGS}/{{name}}", "Reset Cluster Config", configs.reset_config, status=204),
    _list(f"{_BROKERS}/-/configs", "List Configs of All Brokers", configs.list_all_broker_configs),
    _list(f"{_BROKER}/configs", "List Broker Configs", configs.list_configs),
    _write("POST", f"{_BROKER}/configs:alter", "Batch Alter Broker Configs", configs.alter_configs, "Alter"),
    _get(f"{_BROKER}/configs/{{name}}", "Get Broker Config", configs.get_config),
    _write("PUT", f"{_BROKER}/configs/{{name}}", "Update Broker Config", configs.update_config, "Config"),
    Route("DELETE", f"{_BROKER}/configs/{{name}}", "Reset Broker Config", configs.reset_config, status=204),
    _list(f"{_TOPICS}/-/configs", "List Configs of All Topics", configs.list_all_topic_configs),
    _write(
        "POST",
        f"{_TOPICS}/-/configs:alter",
        "Batch Alter Configs of Several Topics",
        configs.alter_all_topic_configs,
        "AlterTopics",
    ),
    _list(f"{_TOPIC}/configs", "List Topic Configs", configs.list_configs),
    _write("POST", f"{_TOPIC}/configs:alter", "Batch Alter Topic Configs", configs.alter_configs, "Alter"),
    _get(f"{_TOPIC}/configs/{{name}}", "Get Topic Config", configs.get_config),
    _write("PUT", f"{_TOPIC}/configs/{{name}}", "Update Topic Config", configs.update_config, "Config"),
    Route("DELETE", f"{_TOPIC}/configs/{{name}}", "Reset Topic Config", configs.reset_config, status=204),
    _list(f"{_TOPIC}/default-configs", "List Default Configs of a Topic", configs.list_default_configs),
)
_TOPIC_ROUTES: Final = (
    _list(_TOPICS, "List Topics", topics.list_topics, (_OPERATIONS,)),
    _write(
        "POST", _TOPICS, "Create Topic", topics.create_topic, "CreateTopic", status=201, response="Resource"
    ),
    _get(_TOPIC, "Get Topic", topics.get_topic, (_OPERATIONS,)),
    _write(
        "PATCH",
        _TOPIC,
        "Update Partition Count",
        topics.update_partitions,
        "PartitionCount",
        status=200,
        response="Resource",
    ),
    Route("DELETE", _TOPIC, "Delete Topic", topics.delete_topic, status=204),
    _list(f"{_TOPIC}/partitions", "List Partitions", partitions.list_partitions),
    _get(_PARTITION, "Get Partition", partitions.get_partition),
    _get(f"{_PARTITION}/offset", "Get Partition Offsets", partitions.get_offsets),
    _list(f"{_PARTITION}/replicas", "List Replicas", partitions.list_replicas),
    _get(f"{_PARTITION}/replicas/{{broker_id}}", "Get Replica", partitions.get_replica),
    _list(f"{_TOPICS}/-/partitions/-/reassignment", "List Reassignments", partitions.list_reassignments),
    _list(
        f"{_TOPIC}/partitions/-/reassignment", "List Reassignments of a Topic", partitions.list_reassignments
    ),
    _get(f"{_PARTITION}/reassignment", "Get Reassignment", partitions.get_reassignment),
)
_GROUP_ROUTES: Final = (
    _list(_GROUPS, "List Consumer Groups", groups.list_groups),
    _get(_GROUP, "Get Consumer Group", groups.get_group),
    _list(f"{_GROUP}/consumers", "List Consumers", groups.list_consumers),
    _get(_CONSUMER, "Get Consumer", groups.get_consumer),
    _list(f"{_CONSUMER}/assignments", "List Consumer Assignments", groups.list_assignments),
    _get(f"{_CONSUMER}/assignments/{_OF_PARTITION}", "Get Consumer Assignment", groups.get_assignment),
    _get(f"{_GROUP}/lag-summary", "Get Consumer Group Lag Summary", lags.get_summary),
    _list(f"{_GROUP}/lags", "List Consumer Lags", lags.list_lags),
    _get(f"{_GROUP}/lags/{_OF_PARTITION}", "Get Consumer Lag", lags.get_lag),
)
_RECORD_ROUTES: Final = (
    _write(
        "POST",
        f"{_TOPIC}/records",
        "Produce Records, as a stream",
        produce.produce,
        "ProduceRecord",
        status=200,
        response="ProducedRecord",
    ),
    _write(
        "POST",
        f"{_TOPIC}/records:batch",
        "Produce Records in Batch",
        batch.produce_batch,
        "ProduceBatch",
        status=207,
        response="ProducedBatch",
    ),
    _read(f"{_TOPIC}/records", "Read the records of a topic, as a stream", topic.read_topic, _READ_TOPIC),
    _read(
        f"{_PARTITION}/records",
        "Read the records of a partition, as a stream",
        topic.read_partition,
        _READ_PARTITION,
    ),
    _read(
        f"{_GROUP}/records",
        "Read records as a member of a consumer group, as a stream",
        group.read_group,
        _READ_GROUP,
    ),
    _write(
        "POST", f"{_GROUP}/offsets", "Commit offsets of a consumer group", commits.commit, "CommittedOffsets"
    ),
)

V3_ROUTES: Final = (*_CLUSTER_ROUTES, *_CONFIG_ROUTES, *_TOPIC_ROUTES, *_GROUP_ROUTES, *_RECORD_ROUTES)
