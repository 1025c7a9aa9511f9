"""Groups and transactions: `kafka.coordinator.group`, `group-coordinator-metrics`, and ours.

Reported by the coordinator of a group or transactional id, so that the sum over the nodes is right.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import Family, gauge

_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR: Final = "coordinator"


def _classic(name: str, help_text: str) -> Family:
    return gauge(f"{_MANAGER}{name}", help_text, reported_by=_COORDINATOR)


GROUPS: Final = _classic("numgroups", "Groups of all types.")
OFFSETS: Final = _classic("numoffsets", "Committed offsets.")
#: By the state of a classic group.
CLASSIC_STATES: Final = {
    "Stable": _classic("numgroupsstable", "Classic groups in the state Stable."),
    "PreparingRebalance": _classic("numgroupspreparingrebalance", "Classic groups that begin a rebalance."),
    "CompletingRebalance": _classic(
        "numgroupscompletingrebalance", "Classic groups that wait for the assignment of their leader."
    ),
    "Empty": _classic("numgroupsempty", "Classic groups without members."),
    "Dead": _classic("numgroupsdead", "Classic groups in the state Dead: none, they are removed at once."),
}
GROUPS_BY_TYPE: Final = gauge(
    "kafka_server_group_coordinator_metrics_group_count",
    "Groups by protocol.",
    ("protocol",),
    reported_by=_COORDINATOR,
)
CONSUMER_GROUPS: Final = gauge(
    "kafka_server_group_coordinator_metrics_consumer_group_count",
    "Groups of the consumer protocol (KIP-848) by state.",
    ("state",),
    reported_by=_COORDINATOR,
)
SHARE_GROUPS: Final = gauge(
    "kafka_server_group_coordinator_metrics_share_group_count",
    "Share groups by state.",
    ("state",),
    reported_by=_COORDINATOR,
)
STREAMS_GROUPS: Final = gauge(
    "kafka_server_group_coordinator_metrics_streams_group_count",
    "Streams groups by state.",
    ("state",),
    reported_by=_COORDINATOR,
)


def _events(name: str, help_text: str) -> tuple[Family, Family]:
    """The number since the start and the rate, as Kafka's meters have both."""
    prefix = f"kafka_server_group_coordinator_metrics_{name}"
    return (
        gauge(f"{prefix}_count", f"{help_text}, since the start.", reported_by=_COORDINATOR),
        gauge(f"{prefix}_rate", f"{help_text}, per second in the last minute.", reported_by=_COORDINATOR),
    )


#: By the field of `GroupCounts`.
EVENTS: Final = {
    "offset_commits": _events("offset_commit", "Committed offsets"),
    "offset_deletions": _events("offset_deletion", "Deleted offsets"),
    "completed_rebalances": _events("group_completed_rebalance", "Generations of classic groups"),
    "consumer_rebalances": _events("consumer_group_rebalance", "Epochs of groups of the consumer protocol"),
}
PARTITIONS: Final = gauge(
    "kafka_server_group_coordinator_metrics_num_partitions",
    "Partitions of `__consumer_offsets` that this node leads, by state.",
    ("state",),
    reported_by=_COORDINATOR,
)
TRANSACTION_PARTITIONS: Final = gauge(
    "kafka_server_transaction_coordinator_metrics_num_partitions",
    "Partitions of `__transaction_state` that this node leads, by state.",
    ("state",),
    reported_by=_COORDINATOR,
)
_LOAD_TIME: Final = "Time in ms to load a partition of `{topic}`, {kind} of those loaded in the last minute."


def _load_times(coordinator: str, topic: str) -> tuple[Family, Family]:
    """The mean and the largest time."""
    prefix = f"kafka_server_{coordinator}_coordinator_metrics_partition_load_time"
    return (
        gauge(f"{prefix}_avg", _LOAD_TIME.format(topic=topic, kind="mean"), reported_by=_COORDINATOR),
        gauge(f"{prefix}_max", _LOAD_TIME.format(topic=topic, kind="largest"), reported_by=_COORDINATOR),
    )


GROUP_LOAD_TIMES: Final = _load_times("group", "__consumer_offsets")
TRANSACTION_LOAD_TIMES: Final = _load_times("transaction", "__transaction_state")
TRANSACTIONS: Final = gauge(
    "moldau_transactions", "Transactional ids by state.", ("state",), reported_by=_COORDINATOR
)

FAMILIES: Final = (
    GROUPS,
    OFFSETS,
    *CLASSIC_STATES.values(),
    GROUPS_BY_TYPE,
    CONSUMER_GROUPS,
    SHARE_GROUPS,
    STREAMS_GROUPS,
    *(family for pair in EVENTS.values() for family in pair),
    PARTITIONS,
    TRANSACTION_PARTITIONS,
    *GROUP_LOAD_TIMES,
    *TRANSACTION_LOAD_TIMES,
    TRANSACTIONS,
)
