"""Replicas, partitions and logs: `kafka.server:type=ReplicaManager`, `kafka.cluster`, `kafka.log`."""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import EVERY_BROKER, Family, counter, gauge, summary

_MANAGER: Final = "kafka_server_replicamanager_"
_PARTITION: Final = ("topic", "partition")


def _of_partition(name: str, help_text: str) -> Family:
    return gauge(f"kafka_cluster_partition_{name}", help_text, _PARTITION, reported_by="leader")


def _of_log(name: str, help_text: str) -> Family:
    return gauge(f"kafka_log_log_{name}", help_text, _PARTITION, reported_by="every replica")


PARTITIONS: Final = gauge(f"{_MANAGER}partitioncount", "Replicas on this broker.", reported_by=EVERY_BROKER)
LEADERS: Final = gauge(f"{_MANAGER}leadercount", "Partitions that this broker leads.", reported_by="leader")
UNDER_REPLICATED: Final = gauge(
    f"{_MANAGER}underreplicatedpartitions",
    "Partitions with fewer in-sync replicas than replicas.",
    reported_by="leader",
)
UNDER_MIN_ISR: Final = gauge(
    f"{_MANAGER}underminisrpartitioncount",
    "Partitions with fewer in-sync replicas than `min.insync.replicas`.",
    reported_by="leader",
)
AT_MIN_ISR: Final = gauge(
    f"{_MANAGER}atminisrpartitioncount",
    "Partitions with exactly `min.insync.replicas` in-sync replicas.",
    reported_by="leader",
)
OFFLINE_REPLICAS: Final = gauge(
    f"{_MANAGER}offlinereplicacount",
    "Replicas of this broker whose log directory is offline.",
    reported_by=EVERY_BROKER,
)
REASSIGNING: Final = gauge(
    f"{_MANAGER}reassigningpartitions", "Partitions that are being reassigned.", reported_by="leader"
)
PRODUCER_IDS: Final = gauge(
    f"{_MANAGER}produceridcount", "Producer ids that the logs of this broker know.", reported_by=EVERY_BROKER
)
ISR_SHRINKS: Final = counter(f"{_MANAGER}isrshrinks_total", "Shrunken ISRs.", reported_by="leader")
ISR_EXPANDS: Final = counter(f"{_MANAGER}isrexpands_total", "Expanded ISRs.", reported_by="leader")
FAILED_ISR_UPDATES: Final = counter(
    f"{_MANAGER}failedisrupdates_total", "ISR changes that the controller refused.", reported_by="leader"
)
MAX_LAG: Final = gauge(
    "kafka_server_replicafetchermanager_maxlag",
    "Largest number of records by which a replica of this broker is behind its leader.",
    ("clientId",),
    reported_by="follower",
)
FETCHER_LAG: Final = gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    "Records by which a replica of this broker is behind its leader; `clientId` names the fetcher.",
    ("clientId", *_PARTITION),
    reported_by="follower",
)
MIN_FETCH_RATE: Final = gauge(
    "kafka_server_replicafetchermanager_minfetchrate",
    "Fetch requests per second of the slowest replica fetcher, in the last minute; 0 without one.",
    ("clientId",),
    reported_by="follower",
)
DEAD_FETCHERS: Final = gauge(
    "kafka_server_replicafetchermanager_deadthreadcount",
    "Always 0: a fetcher that fails starts again.",
    ("clientId",),
    reported_by="follower",
)
FAILED_PARTITIONS: Final = gauge(
    "kafka_server_replicafetchermanager_failedpartitionscount",
    "Partitions that are not followed any more because they failed, until their metadata changes.",
    ("clientId",),
    reported_by="follower",
)
PURGATORY: Final = gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "Requests that wait, by operation.",
    ("delayedOperation",),
    reported_by=EVERY_BROKER,
)
FETCH_SESSIONS: Final = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", reported_by=EVERY_BROKER
)
FETCH_SESSION_PARTITIONS: Final = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
    "Partitions in fetch sessions.",
    reported_by=EVERY_BROKER,
)
FETCH_SESSION_EVICTIONS: Final = counter(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    "Evicted fetch sessions.",
    reported_by=EVERY_BROKER,
)

UNDER_REPLICATED_PARTITION: Final = _of_partition("underreplicated", "1 if replicas are not in sync.")
UNDER_MIN_ISR_PARTITION: Final = _of_partition(
    "underminisr", "1 if fewer than `min.insync.replicas` are in sync."
)
AT_MIN_ISR_PARTITION: Final = _of_partition("atminisr", "1 if exactly `min.insync.replicas` are in sync.")
IN_SYNC_REPLICAS: Final = _of_partition("insyncreplicascount", "In-sync replicas.")
REPLICAS: Final = _of_partition("replicascount", "Replicas.")
LAST_STABLE_OFFSET_LAG: Final = _of_partition(
    "laststableoffsetlag",
    "High watermark minus last stable offset: open transactions hold it back.",
)

LOG_SIZE: Final = _of_log("size", "Bytes of a log.")
LOG_SEGMENTS: Final = _of_log("numlogsegments", "Segments of a log.")
LOG_START_OFFSET: Final = _of_log("logstartoffset", "Log start offset.")
LOG_END_OFFSET: Final = _of_log("logendoffset", "Log end offset.")
OFFLINE_DIRECTORIES: Final = gauge(
    "kafka_log_logmanager_offlinelogdirectorycount", "Offline log directories.", reported_by=EVERY_BROKER
)
DIRECTORY_OFFLINE: Final = gauge(
    "kafka_log_logmanager_logdirectoryoffline",
    "1 if a log directory is offline.",
    ("logDirectory",),
    reported_by=EVERY_BROKER,
)
FLUSH_TIME: Final = summary(
    "kafka_log_logflushstats_logflushrateandtimems",
    "Time of the flushes of logs: `log.flush.*`, closed segments, and `acks=all` with `flush.messages`.",
    reported_by=EVERY_BROKER,
)
UNCLEANABLE: Final = gauge(
    "kafka_log_logcleanermanager_uncleanablepartitionscount",
    "Logs that the cleaner has given up.",
    ("logDirectory",),
    reported_by=EVERY_BROKER,
)
_CLEANER_MANAGER: Final = "kafka_log_logcleanermanager_"
MAX_DIRTY_PERCENT: Final = gauge(
    f"{_CLEANER_MANAGER}max_dirty_percent",
    "Share of the dirtiest compacted log that is not compacted yet, in percent.",
    reported_by=EVERY_BROKER,
)
SINCE_CLEANER_RUN: Final = gauge(
    f"{_CLEANER_MANAGER}time_since_last_run_ms",
    "Time since the cleaner looked for logs to compact.",
    reported_by=EVERY_BROKER,
)
DEAD_CLEANERS: Final = gauge(
    "kafka_log_logcleaner_deadthreadcount",
    "Always 0: a cleaner process that ends starts again.",
    reported_by=EVERY_BROKER,
)

FAMILIES: Final = (
    PARTITIONS,
    LEADERS,
    UNDER_REPLICATED,
    UNDER_MIN_ISR,
    AT_MIN_ISR,
    OFFLINE_REPLICAS,
    REASSIGNING,
    PRODUCER_IDS,
    ISR_SHRINKS,
    ISR_EXPANDS,
    FAILED_ISR_UPDATES,
    MAX_LAG,
    FETCHER_LAG,
    MIN_FETCH_RATE,
    DEAD_FETCHERS,
    FAILED_PARTITIONS,
    PURGATORY,
    FETCH_SESSIONS,
    FETCH_SESSION_PARTITIONS,
    FETCH_SESSION_EVICTIONS,
    UNDER_REPLICATED_PARTITION,
    UNDER_MIN_ISR_PARTITION,
    AT_MIN_ISR_PARTITION,
    IN_SYNC_REPLICAS,
    REPLICAS,
    LAST_STABLE_OFFSET_LAG,
    LOG_SIZE,
    LOG_SEGMENTS,
    LOG_START_OFFSET,
    LOG_END_OFFSET,
    OFFLINE_DIRECTORIES,
    DIRECTORY_OFFLINE,
    UNCLEANABLE,
    MAX_DIRTY_PERCENT,
    SINCE_CLEANER_RUN,
    DEAD_CLEANERS,
    FLUSH_TIME,
)
