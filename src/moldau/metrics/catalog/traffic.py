"""Traffic by topic: `kafka.server:type=BrokerTopicMetrics`.

The sample without `topic` is the sum over all topics, also those that have no sample of their own and those
that are deleted.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import Family, counter

_PREFIX: Final = "kafka_server_brokertopicmetrics_"


def _by_topic(name: str, help_text: str, reported_by: str = "leader") -> Family:
    return counter(f"{_PREFIX}{name}_total", help_text, ("topic",), reported_by=reported_by, has_total=True)


def _total(name: str, help_text: str, reported_by: str) -> Family:
    return counter(f"{_PREFIX}{name}_total", help_text, reported_by=reported_by)


MESSAGES_IN: Final = _by_topic("messagesin", "Records appended by producers and coordinators.")
BYTES_IN: Final = _by_topic("bytesin", "Bytes appended by producers and coordinators.")
BYTES_OUT: Final = _by_topic(
    "bytesout", "Bytes of records sent to consumers.", "the replica that is read, usually the leader"
)
BYTES_REJECTED: Final = _by_topic("bytesrejected", "Bytes of batches that were refused.")
PRODUCE_REQUESTS: Final = _by_topic(
    "totalproducerequests", "Produce requests, counted once for each partition in them."
)
FETCH_REQUESTS: Final = _by_topic(
    "totalfetchrequests", "Reads of fetch requests, counted for each partition; idle followers are not read."
)
FAILED_PRODUCE_REQUESTS: Final = _by_topic(
    "failedproducerequests", "Partitions of produce requests that were answered with an error."
)
FAILED_FETCH_REQUESTS: Final = _by_topic(
    "failedfetchrequests", "Partitions of fetch requests that were answered with an error."
)
PRODUCE_CONVERSIONS: Final = _by_topic(
    "producemessageconversions", "Records converted from an older format; always 0, only magic 2 is accepted."
)
FETCH_CONVERSIONS: Final = _by_topic(
    "fetchmessageconversions", "Records converted to an older format; always 0."
)
REPLICATION_BYTES_IN: Final = _total(
    "replicationbytesin", "Bytes appended by following other leaders.", "follower"
)
REPLICATION_BYTES_OUT: Final = _total("replicationbytesout", "Bytes of records sent to followers.", "leader")
REASSIGNMENT_BYTES_IN: Final = _total(
    "reassignmentbytesin", "Bytes appended to replicas that a reassignment adds.", "follower"
)
REASSIGNMENT_BYTES_OUT: Final = _total(
    "reassignmentbytesout", "Bytes of records sent to replicas that a reassignment adds.", "leader"
)
NO_KEY_RECORDS: Final = _total(
    "nokeycompactedtopicrecords", "Records without a key that compacted topics have refused.", "leader"
)
INVALID_CRC_RECORDS: Final = _total(
    "invalidmessagecrcrecords", "Batches refused because their checksum is wrong.", "leader"
)
INVALID_SEQUENCE_RECORDS: Final = _total(
    "invalidoffsetorsequencerecords",
    "Batches refused because of their offsets or sequence numbers.",
    "leader",
)
FETCHED_BYTES: Final = counter(
    "moldau_fetch_bytes_total",
    "Bytes of records read for consumers and followers, by source: `cache` (page cache) or `disk`.",
    ("source",),
    reported_by="the replica that is read",
)

FAMILIES: Final = (
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    BYTES_REJECTED,
    PRODUCE_REQUESTS,
    FETCH_REQUESTS,
    FAILED_PRODUCE_REQUESTS,
    FAILED_FETCH_REQUESTS,
    PRODUCE_CONVERSIONS,
    FETCH_CONVERSIONS,
    REPLICATION_BYTES_IN,
    REPLICATION_BYTES_OUT,
    REASSIGNMENT_BYTES_IN,
    REASSIGNMENT_BYTES_OUT,
    NO_KEY_RECORDS,
    INVALID_CRC_RECORDS,
    INVALID_SEQUENCE_RECORDS,
    FETCHED_BYTES,
)
