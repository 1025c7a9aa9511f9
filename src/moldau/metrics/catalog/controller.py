"""The controller and the broker's place in the cluster: `kafka.controller`, `KafkaServer`, broker metadata.

What concerns the whole cluster is reported by the active controller, so that the sum over the nodes is right.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import ACTIVE_CONTROLLER, EVERY_BROKER, Family, counter, gauge, summary

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"


def _of_cluster(name: str, help_text: str) -> Family:
    return gauge(f"{_CONTROLLER}{name}", help_text, reported_by=ACTIVE_CONTROLLER)


ACTIVE_CONTROLLERS: Final = gauge(f"{_CONTROLLER}activecontrollercount", "1 on the active controller.")
ACTIVE_BROKERS: Final = _of_cluster("activebrokercount", "Brokers that are not fenced.")
FENCED_BROKERS: Final = _of_cluster("fencedbrokercount", "Registered brokers that are fenced.")
STOPPING_BROKERS: Final = _of_cluster("controlledshutdownbrokercount", "Brokers in controlled shutdown.")
TOPICS: Final = _of_cluster("globaltopiccount", "Topics of the cluster.")
PARTITIONS: Final = _of_cluster("globalpartitioncount", "Partitions of the cluster.")
OFFLINE_PARTITIONS: Final = _of_cluster("offlinepartitionscount", "Partitions without a leader.")
NOT_PREFERRED: Final = _of_cluster(
    "preferredreplicaimbalancecount", "Partitions whose leader is not the preferred one."
)
METADATA_ERRORS: Final = gauge(
    f"{_CONTROLLER}metadataerrorcount", "Failures to apply metadata: 0, the node stops at the first."
)
LAST_COMMITTED: Final = gauge(
    f"{_CONTROLLER}lastcommittedrecordoffset", "Offset of the last committed metadata record on this node."
)
LAST_APPLIED: Final = gauge(
    f"{_CONTROLLER}lastappliedrecordoffset", "Offset of the last metadata record applied on this node."
)
NEW_ACTIVE: Final = counter(
    "moldau_controller_elections_total", "How often this node became the active controller."
)
NEW_ACTIVE_CONTROLLERS: Final = gauge(
    f"{_CONTROLLER}newactivecontrollerscount",
    "Elections of an active controller that this node has seen since its start.",
)
TIMED_OUT_HEARTBEATS: Final = gauge(
    f"{_CONTROLLER}timedoutbrokerheartbeatcount",
    "Brokers that this controller has fenced because they were silent for `broker.session.timeout.ms`; one "
    "whose process has ended is fenced at once and not counted.",
)
LEADER_ELECTIONS: Final = counter(
    "moldau_controller_leader_elections_total",
    "Partitions that got a new leader.",
    reported_by=ACTIVE_CONTROLLER,
)
ELECTION_TIME: Final = summary(
    "kafka_controller_controllerstats_leaderelectionrateandtimems",
    "Partitions that got a new leader; the time is the mean time in which decisions of the controller are "
    "committed.",
    reported_by=ACTIVE_CONTROLLER,
)
UNCLEAN_ELECTIONS: Final = counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "Partitions that got a leader that was not in sync.",
    reported_by=ACTIVE_CONTROLLER,
)

BROKER_STATE: Final = gauge(
    "kafka_server_kafkaserver_brokerstate",
    "1 starting, 2 recovering its logs, 3 running, 7 shutting down.",
    reported_by=EVERY_BROKER,
)
BROKER_APPLIED: Final = gauge(
    "kafka_server_broker_metadata_metrics_last_applied_record_offset",
    "Offset of the last metadata record applied on this node.",
    reported_by=EVERY_BROKER,
)
BROKER_APPLY_LAG: Final = gauge(
    "kafka_server_broker_metadata_metrics_last_applied_record_lag_ms",
    "How long the present image is being applied; 0 if the node is up to date.",
    reported_by=EVERY_BROKER,
)
BROKER_LOAD_ERRORS: Final = gauge(
    "kafka_server_broker_metadata_metrics_metadata_load_error_count",
    "Failures to read metadata records: 0, the node stops at the first.",
    reported_by=EVERY_BROKER,
)
BROKER_APPLY_ERRORS: Final = gauge(
    "kafka_server_broker_metadata_metrics_metadata_apply_error_count",
    "Failures to apply metadata images: 0, the node stops at the first.",
    reported_by=EVERY_BROKER,
)
HEARTBEAT_AGE: Final = gauge(
    "moldau_broker_heartbeat_age_seconds",
    "Time since the controller accepted the last heartbeat of this broker; -1 before the first.",
    reported_by=EVERY_BROKER,
)
READY: Final = gauge("moldau_ready", "1 if `/readyz` is 200.")

FAMILIES: Final = (
    ACTIVE_CONTROLLERS,
    ACTIVE_BROKERS,
    FENCED_BROKERS,
    STOPPING_BROKERS,
    TOPICS,
    PARTITIONS,
    OFFLINE_PARTITIONS,
    NOT_PREFERRED,
    METADATA_ERRORS,
    LAST_COMMITTED,
    LAST_APPLIED,
    NEW_ACTIVE,
    NEW_ACTIVE_CONTROLLERS,
    TIMED_OUT_HEARTBEATS,
    LEADER_ELECTIONS,
    ELECTION_TIME,
    UNCLEAN_ELECTIONS,
    BROKER_STATE,
    BROKER_APPLIED,
    BROKER_APPLY_LAG,
    BROKER_LOAD_ERRORS,
    BROKER_APPLY_ERRORS,
    HEARTBEAT_AGE,
    READY,
)
