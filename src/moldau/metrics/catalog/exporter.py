"""The names of kafka_exporter: topics and partitions by their leader, groups by their coordinator."""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import ACTIVE_CONTROLLER, Family, gauge

_PARTITION: Final = ("topic", "partition")
_GROUP_PARTITION: Final = ("consumergroup", "topic", "partition")
_GROUP_TOPIC: Final = ("consumergroup", "topic")


def _of_partition(name: str, help_text: str) -> Family:
    return gauge(f"kafka_topic_partition_{name}", help_text, _PARTITION, reported_by="leader")


def _of_group(name: str, help_text: str, labels: tuple[str, ...]) -> Family:
    return gauge(f"kafka_consumergroup_{name}", help_text, labels, reported_by="coordinator")


BROKERS: Final = gauge(
    "kafka_brokers", "Brokers that are not fenced.", reported_by=ACTIVE_CONTROLLER, has_total=False
)
BROKER_INFO: Final = gauge(
    "kafka_broker_info",
    "1 for each registered broker.",
    ("id", "address"),
    reported_by=ACTIVE_CONTROLLER,
)
TOPIC_PARTITIONS: Final = gauge(
    "kafka_topic_partitions", "Partitions of a topic.", ("topic",), reported_by="leader of partition 0"
)
CURRENT_OFFSET: Final = _of_partition("current_offset", "High watermark.")
OLDEST_OFFSET: Final = _of_partition("oldest_offset", "Log start offset.")
LEADER: Final = _of_partition("leader", "Id of the leader.")
LEADER_IS_PREFERRED: Final = _of_partition("leader_is_preferred", "1 if the leader is the preferred one.")
REPLICAS: Final = _of_partition("replicas", "Replicas.")
IN_SYNC_REPLICAS: Final = _of_partition("in_sync_replica", "In-sync replicas.")
UNDER_REPLICATED: Final = _of_partition("under_replicated_partition", "1 if replicas are not in sync.")
GROUP_OFFSET: Final = _of_group("current_offset", "Committed offset of a group.", _GROUP_PARTITION)
GROUP_LAG: Final = _of_group(
    "lag",
    "High watermark minus committed offset; without a sample if the high watermark is unknown.",
    _GROUP_PARTITION,
)
GROUP_UNCOMMITTED: Final = _of_group(
    "uncommitted_offsets",
    "As `kafka_consumergroup_lag`, by the name that Grafana's exporter uses.",
    _GROUP_PARTITION,
)
GROUP_LAG_SECONDS: Final = gauge(
    "moldau_lag_seconds",
    "Seconds since the record at the committed offset was appended.",
    _GROUP_PARTITION,
    reported_by="coordinator",
)
GROUP_LAG_MILLIS: Final = gauge(
    "kafka_consumer_lag_millis",
    "As `moldau_lag_seconds`, in ms, by the name that Grafana's exporter uses.",
    _GROUP_PARTITION,
    reported_by="coordinator",
)
GROUP_OFFSET_SUM: Final = _of_group(
    "current_offset_sum", "Sum of the committed offsets of a group in a topic.", _GROUP_TOPIC
)
GROUP_LAG_SUM: Final = _of_group(
    "lag_sum",
    "Sum of the lags of a group in a topic; without a sample if one of them is unknown.",
    _GROUP_TOPIC,
)
GROUP_MEMBERS: Final = _of_group("members", "Members of a group.", ("consumergroup",))

FAMILIES: Final = (
    BROKERS,
    BROKER_INFO,
    TOPIC_PARTITIONS,
    CURRENT_OFFSET,
    OLDEST_OFFSET,
    LEADER,
    LEADER_IS_PREFERRED,
    REPLICAS,
    IN_SYNC_REPLICAS,
    UNDER_REPLICATED,
    GROUP_OFFSET,
    GROUP_LAG,
    GROUP_UNCOMMITTED,
    GROUP_LAG_SECONDS,
    GROUP_LAG_MILLIS,
    GROUP_OFFSET_SUM,
    GROUP_LAG_SUM,
    GROUP_MEMBERS,
)
