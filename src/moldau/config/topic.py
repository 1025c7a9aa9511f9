"""The configs of topics, and the broker configs that are their defaults.

Broker configs for the same value in different units are tried in the order given here; `milliseconds` is the
length of their unit.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.config.definition import BOOLEAN, DOUBLE, INT, LIST, LONG, MAX_LONG, STRING, ConfigKey, table
from moldau.config.validators import GzipLevel, ListOf, OneOf, ThrottledReplicas, at_least, between

_MINUTE = 60_000
_HOUR = 3_600_000
_DAY = 86_400_000

_SEGMENTS = (
    ConfigKey(
        "segment.bytes",
        INT,
        1_073_741_824,
        "The size in bytes at which a segment is closed and the next one begun. Retention and compaction "
        "only affect closed segments.",
        at_least(1_048_576),
    ),
    ConfigKey(
        "segment.ms",
        LONG,
        7 * _DAY,
        "The age at which a segment is closed even if it is not full, so that it can be deleted or "
        "compacted.",
        at_least(1),
    ),
    ConfigKey(
        "segment.jitter.ms",
        LONG,
        0,
        "The maximum random reduction of `segment.ms`, so that segments are not all closed at once.",
        at_least(0),
    ),
    ConfigKey(
        "segment.index.bytes",
        INT,
        10_485_760,
        "The size in bytes of an index at which its segment is closed.",
        at_least(4),
    ),
    ConfigKey(
        "index.interval.bytes",
        INT,
        4096,
        "The number of bytes of records between two entries of the offset index.",
        at_least(0),
    ),
    ConfigKey("preallocate", BOOLEAN, False, "Whether the file of a new segment gets its full size at once."),
    ConfigKey(
        "internal.segment.bytes",
        INT,
        None,
        "Overrides `segment.bytes` without its usual minimum; for tests.",
        internal=True,
    ),
    ConfigKey(
        "flush.messages",
        LONG,
        MAX_LONG,
        "The number of records after which a partition is flushed to disk. The default leaves it to the "
        "operating system, since replication protects better than flushing.",
        at_least(1),
    ),
    ConfigKey(
        "flush.ms", LONG, MAX_LONG, "The maximum time before a record is flushed to disk.", at_least(0)
    ),
    ConfigKey(
        "file.delete.delay.ms",
        LONG,
        60_000,
        "The time in milliseconds before the files of a deleted segment are removed, so that reads in "
        "progress can finish.",
        at_least(0),
    ),
)

_RETENTION = (
    ConfigKey(
        "cleanup.policy",
        LIST,
        ("delete",),
        "The cleanup policy: `delete` removes old segments, `compact` retains the last value of each key, "
        "both do both. An empty value retains everything.",
        ListOf(("compact", "delete")),
    ),
    ConfigKey(
        "retention.ms",
        LONG,
        7 * _DAY,
        "The maximum age of a segment in milliseconds before it is deleted; -1 means no limit.",
        at_least(-1),
    ),
    ConfigKey(
        "retention.bytes",
        LONG,
        -1,
        "The maximum size in bytes of each partition before its oldest segments are deleted; -1 means no "
        "limit.",
    ),
    ConfigKey(
        "delete.retention.ms",
        LONG,
        _DAY,
        "The time in milliseconds that tombstones are retained in a compacted topic, so that readers from "
        "the beginning see them.",
        at_least(0),
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "The minimum ratio of dirty log to total log for a log to be compacted.",
        between(0, 1),
    ),
    ConfigKey(
        "min.compaction.lag.ms",
        LONG,
        0,
        "The minimum time before a record may be compacted.",
        at_least(0),
    ),
    ConfigKey(
        "max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        "The maximum time before a record is compacted, whatever the dirty ratio.",
        at_least(1),
    ),
)

_RECORDS = (
    ConfigKey(
        "max.message.bytes",
        INT,
        1_048_588,
        "The maximum size in bytes of a record batch, after compression.",
        at_least(0),
    ),
    ConfigKey(
        "compression.type",
        STRING,
        "producer",
        "The compression of stored batches: `producer` keeps that of the client, any other value "
        "recompresses them.",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    ),
    ConfigKey(
        "compression.gzip.level",
        INT,
        -1,
        "The compression level of gzip when the broker compresses; -1 is the default level.",
        GzipLevel(),
    ),
    ConfigKey(
        "compression.lz4.level",
        INT,
        9,
        "The compression level of lz4 when the broker compresses.",
        between(1, 17),
    ),
    ConfigKey(
        "compression.zstd.level",
        INT,
        3,
        "The compression level of zstd when the broker compresses.",
        between(-131_072, 22),
    ),
    ConfigKey(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "The source of a record's timestamp: `CreateTime` is the producer's clock, `LogAppendTime` the "
        "broker's.",
        OneOf(("CreateTime", "LogAppendTime")),
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        "The maximum time in milliseconds by which a producer's timestamp may precede the broker's clock. It "
        "has no effect with `LogAppendTime`.",
        at_least(0),
    ),
    ConfigKey(
        "message.timestamp.after.max.ms",
        LONG,
        _HOUR,
        "The maximum time in milliseconds by which a producer's timestamp may be ahead of the broker's "
        "clock. It has no effect with `LogAppendTime`.",
        at_least(0),
    ),
)

_REPLICATION = (
    ConfigKey(
        "min.insync.replicas",
        INT,
        1,
        "The minimum number of in-sync replicas for a write with `acks=all` to be accepted.",
        at_least(1),
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether an out-of-sync replica may become leader as a last resort, at the price of losing records.",
    ),
    ConfigKey(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        "The replicas whose sending is throttled, as `partition:broker` separated by commas, or `*` for all.",
        ThrottledReplicas(),
    ),
    ConfigKey(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        "The replicas whose fetching is throttled, as `partition:broker` separated by commas, or `*` for "
        "all.",
        ThrottledReplicas(),
    ),
)

_REMOTE = (
    ConfigKey(
        "remote.storage.enable",
        BOOLEAN,
        False,
        "Whether closed segments are copied to the remote store. Requires `remote.log.storage.system.enable` "
        "of the brokers.",
    ),
    ConfigKey(
        "remote.log.copy.disable", BOOLEAN, False, "Whether no more segments are copied to the remote store."
    ),
    ConfigKey(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        "Whether remote segments are deleted when tiered storage is disabled for the topic.",
    ),
    ConfigKey(
        "local.retention.ms",
        LONG,
        -2,
        "The time in milliseconds that segments are retained on local disk after they are copied to the "
        "remote store; -2 follows `retention.ms`.",
        at_least(-2),
    ),
    ConfigKey(
        "local.retention.bytes",
        LONG,
        -2,
        "The maximum size in bytes of a partition's local segments before those that are in the remote store "
        "are deleted; -2 follows `retention.bytes`.",
        at_least(-2),
    ),
)

_STRATEGIES = "io.confluent.kafka.serializers.subject."
TOPIC_NAME_STRATEGY = f"{_STRATEGIES}TopicNameStrategy"
RECORD_NAME_STRATEGY = f"{_STRATEGIES}RecordNameStrategy"
TOPIC_RECORD_NAME_STRATEGY = f"{_STRATEGIES}TopicRecordNameStrategy"
_STRATEGY = OneOf((TOPIC_NAME_STRATEGY, RECORD_NAME_STRATEGY, TOPIC_RECORD_NAME_STRATEGY))

#: Broker-side schema validation: Confluent Server's names, which Apache Kafka does not have.
_SCHEMAS = (
    ConfigKey(
        "confluent.key.schema.validation",
        BOOLEAN,
        False,
        "Whether keys must name a schema that is registered under the topic's subject for keys.",
        internal=True,
    ),
    ConfigKey(
        "confluent.key.subject.name.strategy",
        STRING,
        TOPIC_NAME_STRATEGY,
        "The strategy that names the subject of a key's schema.",
        _STRATEGY,
        internal=True,
    ),
    ConfigKey(
        "confluent.value.schema.validation",
        BOOLEAN,
        False,
        "Whether values must name a schema that is registered under the topic's subject for values.",
        internal=True,
    ),
    ConfigKey(
        "confluent.value.subject.name.strategy",
        STRING,
        TOPIC_NAME_STRATEGY,
        "The strategy that names the subject of a value's schema.",
        _STRATEGY,
        internal=True,
    ),
)
#: The topic configs that switch schema validation on.
SCHEMA_VALIDATION = ("confluent.key.schema.validation", "confluent.value.schema.validation")

TOPIC_CONFIGS: dict[str, ConfigKey] = table(_SEGMENTS, _RETENTION, _RECORDS, _REPLICATION, _REMOTE, _SCHEMAS)


class BrokerSynonym(NamedTuple):
    """A broker config that is the default of a topic config; `milliseconds` is the length of its unit."""

    name: str
    milliseconds: int = 1


TOPIC_CONFIG_SYNONYMS: dict[str, tuple[BrokerSynonym, ...]] = {
    "cleanup.policy": (BrokerSynonym("log.cleanup.policy"),),
    "compression.gzip.level": (BrokerSynonym("compression.gzip.level"),),
    "compression.lz4.level": (BrokerSynonym("compression.lz4.level"),),
    "compression.type": (BrokerSynonym("compression.type"),),
    "compression.zstd.level": (BrokerSynonym("compression.zstd.level"),),
    "delete.retention.ms": (BrokerSynonym("log.cleaner.delete.retention.ms"),),
    "file.delete.delay.ms": (BrokerSynonym("log.segment.delete.delay.ms"),),
    "flush.messages": (BrokerSynonym("log.flush.interval.messages"),),
    "flush.ms": (BrokerSynonym("log.flush.interval.ms"), BrokerSynonym("log.flush.scheduler.interval.ms")),
    "index.interval.bytes": (BrokerSynonym("log.index.interval.bytes"),),
    "local.retention.bytes": (BrokerSynonym("log.local.retention.bytes"),),
    "local.retention.ms": (BrokerSynonym("log.local.retention.ms"),),
    "max.compaction.lag.ms": (BrokerSynonym("log.cleaner.max.compaction.lag.ms"),),
    "max.message.bytes": (BrokerSynonym("message.max.bytes"),),
    "message.timestamp.after.max.ms": (BrokerSynonym("log.message.timestamp.after.max.ms"),),
    "message.timestamp.before.max.ms": (BrokerSynonym("log.message.timestamp.before.max.ms"),),
    "message.timestamp.type": (BrokerSynonym("log.message.timestamp.type"),),
    "min.cleanable.dirty.ratio": (BrokerSynonym("log.cleaner.min.cleanable.ratio"),),
    "min.compaction.lag.ms": (BrokerSynonym("log.cleaner.min.compaction.lag.ms"),),
    "min.insync.replicas": (BrokerSynonym("min.insync.replicas"),),
    "preallocate": (BrokerSynonym("log.preallocate"),),
    "retention.bytes": (BrokerSynonym("log.retention.bytes"),),
    "retention.ms": (
        BrokerSynonym("log.retention.ms"),
        BrokerSynonym("log.retention.minutes", _MINUTE),
        BrokerSynonym("log.retention.hours", _HOUR),
    ),
    "segment.bytes": (BrokerSynonym("log.segment.bytes"),),
    "segment.index.bytes": (BrokerSynonym("log.index.size.max.bytes"),),
    "segment.jitter.ms": (BrokerSynonym("log.roll.jitter.ms"), BrokerSynonym("log.roll.jitter.hours", _HOUR)),
    "segment.ms": (BrokerSynonym("log.roll.ms"), BrokerSynonym("log.roll.hours", _HOUR)),
    "unclean.leader.election.enable": (BrokerSynonym("unclean.leader.election.enable"),),
}
