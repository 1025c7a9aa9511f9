"""Tiered storage: `kafka.server:type=BrokerTopicMetrics` and `kafka.log.remote:type=RemoteLogManager`.

The samples exist only on brokers with `remote.log.storage.system.enable`.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import Family, counter, gauge

_PREFIX: Final = "kafka_server_brokertopicmetrics_"
_LEADER: Final = "leader"
_BROKER: Final = "brokers with tiered storage"


def _counter(name: str, help_text: str, reported_by: str = _LEADER) -> Family:
    return counter(f"{_PREFIX}{name}_total", help_text, ("topic",), reported_by=reported_by, has_total=True)


def _gauge(name: str, help_text: str) -> Family:
    return gauge(f"{_PREFIX}{name}", help_text, ("topic",), reported_by=_LEADER, has_total=True)


COPY_BYTES: Final = _counter("remotecopybytes", "Bytes of segments copied to the remote store.")
COPY_REQUESTS: Final = _counter("remotecopyrequests", "Copies of segments that were begun.")
COPY_ERRORS: Final = _counter("remotecopyerrors", "Copies of segments that failed; they are repeated.")
FETCH_BYTES: Final = _counter(
    "remotefetchbytes", "Bytes read from the remote store.", "the replica that is read, usually the leader"
)
FETCH_REQUESTS: Final = _counter(
    "remotefetchrequests",
    "Partitions of fetch requests that were looked up in the remote tier.",
    "the replica that is read, usually the leader",
)
FETCH_ERRORS: Final = _counter(
    "remotefetcherrors",
    "Those that failed; clients retry them.",
    "the replica that is read, usually the leader",
)
DELETE_REQUESTS: Final = _counter("remotedeleterequests", "Deletions of remote segments that were begun.")
DELETE_ERRORS: Final = _counter(
    "remotedeleteerrors", "Deletions of remote segments that failed; they are repeated."
)
COPY_LAG_BYTES: Final = _gauge("remotecopylagbytes", "Bytes of closed segments that are not copied yet.")
COPY_LAG_SEGMENTS: Final = _gauge("remotecopylagsegments", "Closed segments that are not copied yet.")
DELETE_LAG_BYTES: Final = _gauge("remotedeletelagbytes", "Bytes of expired remote segments not deleted yet.")
DELETE_LAG_SEGMENTS: Final = _gauge("remotedeletelagsegments", "Expired remote segments not deleted yet.")
LOG_SIZE_BYTES: Final = _gauge("remotelogsizebytes", "Bytes of segments in the remote tier.")
METADATA_COUNT: Final = _gauge("remotelogmetadatacount", "Remote segments with metadata, in any state.")
READER_QUEUE: Final = gauge(
    "kafka_log_remote_remotelogmanager_remotelogreadertaskqueuesize",
    "Reads of the remote store that run or wait; at most `remote.log.reader.max.pending.tasks`.",
    reported_by=_BROKER,
)
INDEX_CACHE_BYTES: Final = gauge(
    "moldau_remote_index_cache_bytes", "Size of the local copies of remote indexes.", reported_by=_BROKER
)
COPY_THROTTLED: Final = counter(
    "moldau_remote_copy_throttled_seconds_total",
    "Time for which copies waited for `remote.log.manager.copy.max.bytes.per.second`.",
    reported_by=_BROKER,
)

FAMILIES: Final = (
    COPY_BYTES,
    COPY_REQUESTS,
    COPY_ERRORS,
    FETCH_BYTES,
    FETCH_REQUESTS,
    FETCH_ERRORS,
    DELETE_REQUESTS,
    DELETE_ERRORS,
    COPY_LAG_BYTES,
    COPY_LAG_SEGMENTS,
    DELETE_LAG_BYTES,
    DELETE_LAG_SEGMENTS,
    LOG_SIZE_BYTES,
    METADATA_COUNT,
    READER_QUEUE,
    INDEX_CACHE_BYTES,
    COPY_THROTTLED,
)
