"""Logs on disk: folders, segments, flushing, retention, compaction, compression, timestamps."""

from __future__ import annotations

import sys

from moldau.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_LONG,
    PER_BROKER,
    STRING,
    ConfigKey,
)
from moldau.config.validators import GzipLevel, ListOf, OneOf, at_least, between

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "log.dir",
        LIST,
        ("/tmp/kafka-logs",),
        "The folder for data, used when `log.dirs` is not set.",
        ListOf(empty_allowed=False),
    ),
    ConfigKey(
        "log.dirs",
        LIST,
        None,
        "The folders for data, separated by commas, ideally one per disk. New partitions are created in the "
        "folder with the fewest partitions.",
        ListOf(empty_allowed=False, null_allowed=True),
    ),
    ConfigKey(
        "cordoned.log.dirs",
        LIST,
        (),
        "The folders of `log.dirs` that get no new partitions, or `*` for all of them.",
        ListOf(null_allowed=True),
        PER_BROKER,
    ),
    ConfigKey(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        "The maximum time in milliseconds that a broker continues to run if it cannot report a failed folder "
        "to the controller.",
        at_least(1),
    ),
    ConfigKey(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        "The number of threads per folder that recover logs at startup and flush them at shutdown.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether an unknown topic that a client requests is created.",
    ),
    ConfigKey("delete.topic.enable", BOOLEAN, True, "Whether topics may be deleted."),
    ConfigKey(
        "num.partitions",
        INT,
        1,
        "The default number of partitions of a topic.",
        at_least(1),
    ),
    ConfigKey(
        "message.max.bytes",
        INT,
        1_048_588,
        "The maximum size in bytes of a record batch, after compression. Topics override it with "
        "`max.message.bytes`.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "compression.type",
        STRING,
        "producer",
        "The compression of stored batches: `producer` keeps that of the client, any other value "
        "recompresses them.",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "compression.gzip.level",
        INT,
        -1,
        "The compression level of gzip when the broker compresses; -1 is the default level.",
        GzipLevel(),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "compression.lz4.level",
        INT,
        9,
        "The compression level of lz4 when the broker compresses.",
        between(1, 17),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "compression.zstd.level",
        INT,
        3,
        "The compression level of zstd when the broker compresses.",
        between(-131_072, 22),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.segment.bytes",
        INT,
        1_073_741_824,
        "The size in bytes at which a segment is closed and the next one begun.",
        at_least(1_048_576),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.roll.ms",
        LONG,
        None,
        "The age at which a segment is closed even if it is not full. If unset, `log.roll.hours` applies.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.roll.hours",
        INT,
        168,
        "The age in hours at which a segment is closed even if it is not full, unless `log.roll.ms` is set.",
        at_least(1),
    ),
    ConfigKey(
        "log.roll.jitter.ms",
        LONG,
        None,
        "The maximum random reduction of the roll time, so that segments are not all "
        "closed at once. If unset, `log.roll.jitter.hours` applies.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.roll.jitter.hours",
        INT,
        0,
        "The same as `log.roll.jitter.ms` in hours, unless that is set.",
        at_least(0),
    ),
    ConfigKey(
        "log.index.size.max.bytes",
        INT,
        10_485_760,
        "The size in bytes of an index at which its segment is closed.",
        at_least(4),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.index.interval.bytes",
        INT,
        4096,
        "The number of bytes of records between two entries of the offset index. Smaller values find an "
        "offset faster and make the index larger.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.preallocate",
        BOOLEAN,
        False,
        "Whether the file of a new segment gets its full size at once.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.flush.interval.messages",
        LONG,
        MAX_LONG,
        "The number of records after which a partition is flushed to disk. The default leaves it to the "
        "operating system, since replication protects better than flushing.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.flush.interval.ms",
        LONG,
        None,
        "The maximum time before a record is flushed to disk. If unset, `log.flush.scheduler.interval.ms` "
        "applies.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.flush.scheduler.interval.ms",
        LONG,
        MAX_LONG,
        "The interval between checks whether a log has to be flushed to disk.",
    ),
    ConfigKey(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "The interval between checkpoints of the recovery points, from which logs are recovered after a "
        "crash.",
        at_least(0),
    ),
    ConfigKey(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "The interval between checkpoints of the log start offsets.",
        at_least(0),
    ),
    ConfigKey(
        "log.retention.bytes",
        LONG,
        -1,
        "The maximum size in bytes of a partition before its oldest segments are deleted; -1 means no limit.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.retention.ms",
        LONG,
        None,
        "The maximum age of a segment in milliseconds before it is deleted; -1 means no limit. If unset, "
        "`log.retention.minutes` applies.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.retention.minutes",
        INT,
        None,
        "The maximum age of a segment in minutes before it is deleted, unless `log.retention.ms` is set. If "
        "unset, `log.retention.hours` applies.",
    ),
    ConfigKey(
        "log.retention.hours",
        INT,
        168,
        "The maximum age of a segment in hours before it is deleted, unless `log.retention.minutes` or "
        "`log.retention.ms` is set.",
    ),
    ConfigKey(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        "The interval between checks for segments to delete.",
        at_least(1),
    ),
    ConfigKey(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        "The time in milliseconds before the files of a deleted segment are removed, so that reads in "
        "progress can finish.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "The cleanup policy: `delete` removes old segments, `compact` retains the last value of each key, "
        "both do both. An empty list retains everything.",
        ListOf(("compact", "delete")),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.enable",
        BOOLEAN,
        True,
        "Whether compacted topics are compacted. Without it they grow without limit, `__consumer_offsets` "
        "included.",
    ),
    ConfigKey(
        "log.cleaner.threads", INT, 1, "The number of threads that compact logs.", at_least(0), CLUSTER_WIDE
    ),
    ConfigKey(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        "The time in milliseconds that the cleaner sleeps when there is nothing to compact.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        "The memory in bytes that all cleaner threads together use to find the last value of each key. Each "
        "thread needs more than 1 MiB.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        "The memory in bytes that all cleaner threads together use for reading and writing.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "The maximum load factor of the table of keys. A higher value compacts more at once and finds keys "
        "more slowly.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        sys.float_info.max,
        "The maximum average rate in bytes per second at which the cleaner reads and writes.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "The minimum ratio of dirty log to total log for a log to be compacted.",
        between(0, 1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "The minimum time before a record may be compacted.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        "The maximum time before a record is compacted, whatever the dirty ratio.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        "The time in milliseconds that tombstones are retained in a compacted topic, so that readers from "
        "the beginning see them.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "The source of a record's timestamp: `CreateTime` is the producer's clock, `LogAppendTime` the "
        "broker's.",
        OneOf(("CreateTime", "LogAppendTime")),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        "The maximum time in milliseconds by which a producer's timestamp may precede the broker's clock. It "
        "has no effect with `LogAppendTime`.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "The maximum time in milliseconds by which a producer's timestamp may be ahead of the broker's "
        "clock. It has no effect with `LogAppendTime`.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "The time in milliseconds between startup and the first periodic task of the logs; for tests.",
        at_least(0),
        internal=True,
    ),
)
