"""Verdicts as Prometheus metrics, in three dialects: kafka_exporter's, Burrow's, and ours.

Rules and dashboards for kafka_exporter or Burrow read their own names. `moldau_lag_*` adds the age of the lag
in seconds and the status of partitions and groups, with Burrow's numbers. Nodes serve kafka_exporter's names
too, so these are declared in the table of metrics.
"""

from __future__ import annotations

from typing import Final

from moldau.lag.alerts import Webhook
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag
from moldau.metrics.catalog import exporter
from moldau.metrics.exposition import OPEN_METRICS, TEXT, Scrape, labels_text, wants_open_metrics
from moldau.metrics.family import counter, gauge

_READER: Final = ("consumergroup", "topic", "partition")
_STATUS: Final = "1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND"

PARTITION_STATUS: Final = gauge(
    "moldau_lag_status", f"Status of the group in the partition: {_STATUS}.", _READER
)
GROUP_STATUS: Final = gauge(
    "moldau_lag_group_status", f"Worst status of the partitions of the group: {_STATUS}.", ("consumergroup",)
)
GROUP_COMPLETE: Final = gauge(
    "moldau_lag_group_complete_ratio",
    "Partitions of the group that were observed for a whole window, as a fraction.",
    ("consumergroup",),
)
UP: Final = gauge("moldau_lag_up", "Whether the last round of requests succeeded: 1 or 0.")
ROUND_TIME: Final = gauge("moldau_lag_round_timestamp_seconds", "Time of the last successful round.")
ALERTS: Final = counter("moldau_lag_alerts_sent_total", "Alerts that the webhook has accepted.")
ALERTS_DROPPED: Final = counter("moldau_lag_alerts_dropped_total", "Alerts that were not delivered.")

_BURROW_GROUP: Final = ("cluster", "consumer_group")
_BURROW_READER: Final = (*_BURROW_GROUP, "topic", "partition")
BURROW_STATUS: Final = gauge(
    "burrow_kafka_consumer_status", "Status of the group: 1 OK, 2 WARN, 3 ERR.", _BURROW_GROUP
)
BURROW_PARTITION_STATUS: Final = gauge(
    "burrow_kafka_topic_partition_status", f"Status of the group in the partition: {_STATUS}.", _BURROW_READER
)
BURROW_COMMITTED: Final = gauge(
    "burrow_kafka_consumer_current_offset", "Committed offset of the group.", _BURROW_READER
)
BURROW_LAG: Final = gauge(
    "burrow_kafka_consumer_partition_lag", "Records that the group has not committed yet.", _BURROW_READER
)
BURROW_END_OFFSET: Final = gauge(
    "burrow_kafka_topic_partition_offset",
    "Log end offset of the partition.",
    ("cluster", "topic", "partition"),
)
#: A gauge whose name is that of a counter, which OpenMetrics forbids: it is in the text format only.
_BURROW_TOTAL: Final = "burrow_kafka_consumer_lag_total"
_BURROW_TOTAL_HEADER: Final = (
    f"# HELP {_BURROW_TOTAL} Records that the group has not committed yet, over all partitions.\n"
    f"# TYPE {_BURROW_TOTAL} gauge\n"
)

FAMILIES: Final = (
    exporter.CURRENT_OFFSET,
    exporter.GROUP_OFFSET,
    exporter.GROUP_OFFSET_SUM,
    exporter.GROUP_LAG,
    exporter.GROUP_LAG_SUM,
    exporter.GROUP_MEMBERS,
    exporter.GROUP_LAG_SECONDS,
    exporter.GROUP_LAG_MILLIS,
    PARTITION_STATUS,
    GROUP_STATUS,
    GROUP_COMPLETE,
    UP,
    ROUND_TIME,
    ALERTS,
    ALERTS_DROPPED,
    BURROW_STATUS,
    BURROW_PARTITION_STATUS,
    BURROW_COMMITTED,
    BURROW_LAG,
    BURROW_END_OFFSET,
)


def render(cluster: str, snapshot: LagSnapshot, webhook: Webhook | None, accept: str) -> tuple[bytes, bytes]:
    """Return the content type and the text of a scrape, in the format that `accept` prefers."""
    scrape = Scrape(FAMILIES)
    scrape.add(UP, int(snapshot.error is None))
    scrape.add(ROUND_TIME, snapshot.time_ms / 1000)
    scrape.add(ALERTS, webhook.sent if webhook else 0)
    scrape.add(ALERTS_DROPPED, webhook.dropped if webhook else 0)
    add_topics(scrape, cluster, snapshot)
    for group in snapshot.groups.values():
        add_group(scrape, cluster, group)
    open_metrics = wants_open_metrics(accept)
    text = "".join(scrape.rendered(open_metrics=open_metrics))
    if not open_metrics:
        text += _burrow_total(cluster, snapshot)
    return (OPEN_METRICS if open_metrics else TEXT).encode(), text.encode()


def add_topics(scrape: Scrape, cluster: str, snapshot: LagSnapshot) -> None:
    for topic, ends in snapshot.topics.items():
        for partition, end in ends.items():
            scrape.add(exporter.CURRENT_OFFSET, end, topic, partition)
            scrape.add(BURROW_END_OFFSET, end, cluster, topic, partition)


def add_group(scrape: Scrape, cluster: str, group: GroupLag) -> None:
    scrape.add(exporter.GROUP_MEMBERS, group.members, group.group)
    scrape.add(GROUP_STATUS, int(group.status), group.group)
    scrape.add(GROUP_COMPLETE, group.complete, group.group)
    scrape.add(BURROW_STATUS, int(group.burrow_status), cluster, group.group)
    committed: dict[str, int] = {}
    for each in group.partitions:
        if each.committed is not None:
            committed[each.topic] = committed.get(each.topic, 0) + each.committed
            _add_partition(scrape, cluster, group.group, each, each.committed)
    for topic, offsets in committed.items():
        if topic not in group.unread:
            scrape.add(exporter.GROUP_OFFSET_SUM, offsets, group.group, topic)
    for topic, lag in group.topic_lags.items():
        if lag is not None:
            scrape.add(exporter.GROUP_LAG_SUM, lag, group.group, topic)


def _add_partition(scrape: Scrape, cluster: str, group: str, lag: PartitionLag, committed: int) -> None:
    labels = (group, lag.topic, lag.partition)
    scrape.add(exporter.GROUP_OFFSET, committed, *labels)
    if lag.lag is None:
        return
    scrape.add(exporter.GROUP_LAG, lag.lag, *labels)
    scrape.add(BURROW_LAG, lag.lag, cluster, *labels)
    if lag.age is not None:
        scrape.add(exporter.GROUP_LAG_SECONDS, lag.age.ms / 1000, *labels)
        scrape.add(exporter.GROUP_LAG_MILLIS, lag.age.ms, *labels)
    if lag.judged:
        scrape.add(PARTITION_STATUS, int(lag.status), *labels)
    if lag.complete == 1.0:
        scrape.add(BURROW_COMMITTED, committed, cluster, *labels)
        scrape.add(BURROW_PARTITION_STATUS, int(lag.status), cluster, *labels)


def _burrow_total(cluster: str, snapshot: LagSnapshot) -> str:
    lines = [
        f"{_BURROW_TOTAL}{labels_text(_BURROW_GROUP, (cluster, each.group))} {each.total_lag}\n"
        for each in snapshot.groups.values()
        if each.total_lag is not None
    ]
    return _BURROW_TOTAL_HEADER + "".join(lines)
