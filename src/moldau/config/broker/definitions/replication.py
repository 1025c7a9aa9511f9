"""Replication, leadership, replication quotas and client quotas."""

from __future__ import annotations

from moldau.config.definition import BOOLEAN, CLASS, CLUSTER_WIDE, INT, LONG, MAX_LONG, STRING, ConfigKey
from moldau.config.validators import at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "default.replication.factor",
        INT,
        1,
        "The default replication factor of a topic.",
    ),
    ConfigKey(
        "min.insync.replicas",
        INT,
        1,
        "The minimum number of in-sync replicas for a write with `acks=all` to be accepted.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether an out-of-sync replica may become leader as a last resort, at the price of losing records.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        "The interval between checks for partitions without a leader that need an unclean election.",
        at_least(1),
        internal=True,
    ),
    ConfigKey(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "Whether leadership is moved back to the preferred replicas automatically.",
    ),
    ConfigKey(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "The interval between checks for partitions that are not led by their preferred replica.",
        at_least(1),
    ),
    ConfigKey(
        "num.replica.fetchers",
        INT,
        1,
        "The number of fetcher connections to each other broker.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "The number of threads that move replicas between the folders of this broker. If unset, it is the "
        "number of folders.",
    ),
    ConfigKey(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "The maximum time in milliseconds that a follower may lag before it is removed from the in-sync "
        "replicas.",
    ),
    ConfigKey(
        "replica.fetch.min.bytes",
        INT,
        1,
        "The minimum size in bytes of a response to a follower's fetch, for which it waits up to "
        "`replica.fetch.wait.max.ms`.",
    ),
    ConfigKey(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "The maximum time in milliseconds that a follower's fetch waits for `replica.fetch.min.bytes`. It "
        "must not exceed `replica.lag.time.max.ms`, or idle partitions would fall out of sync.",
    ),
    ConfigKey(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "The maximum number of bytes of one partition in a follower's fetch. A first batch that is larger is "
        "still returned whole.",
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        "The maximum number of bytes of all partitions in a follower's fetch.",
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "The backoff in milliseconds of a follower after an error of the leader.",
        at_least(0),
    ),
    ConfigKey(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "The maximum time in milliseconds that a follower waits for the leader's response. It must not be "
        "less than `replica.fetch.wait.max.ms`.",
    ),
    ConfigKey(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        "The size in bytes of the receive buffer of a follower's connection to the leader.",
    ),
    ConfigKey(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "The interval between checkpoints of the high watermarks.",
    ),
    ConfigKey(
        "replica.selector.class",
        STRING,
        None,
        "The Java class that selects the replica a consumer reads from.",
    ),
    ConfigKey(
        "quota.window.num",
        INT,
        11,
        "The number of windows over which client quotas are measured.",
        at_least(1),
    ),
    ConfigKey(
        "quota.window.size.seconds",
        INT,
        1,
        "The length in seconds of a window of client quotas.",
        at_least(1),
    ),
    ConfigKey(
        "replication.quota.window.num",
        INT,
        11,
        "The number of windows over which replication quotas are measured.",
        at_least(1),
    ),
    ConfigKey(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "The length in seconds of a window of replication quotas.",
        at_least(1),
    ),
    ConfigKey(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "The number of windows over which the quota for moving replicas between folders is measured.",
        at_least(1),
    ),
    ConfigKey(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "The length in seconds of a window of the quota for moving replicas between folders.",
        at_least(1),
    ),
    ConfigKey(
        "controller.quota.window.num",
        INT,
        11,
        "The number of windows over which the quota for changes to topics (`controller_mutation_rate`) "
        "accumulates.",
        at_least(1),
    ),
    ConfigKey(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "The length in seconds of a window of the quota for changes to topics.",
        at_least(1),
    ),
    ConfigKey(
        "client.quota.callback.class",
        CLASS,
        None,
        "A Java class that decides which quota a client has. Moldau cannot run it and refuses to start.",
    ),
)

#: Throttles that exist only as dynamic configuration.
DYNAMIC_CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "leader.replication.throttled.rate",
        LONG,
        MAX_LONG,
        "The maximum rate in bytes per second at which this broker sends to throttled replicas.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "follower.replication.throttled.rate",
        LONG,
        MAX_LONG,
        "The maximum rate in bytes per second at which this broker fetches for throttled replicas.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        MAX_LONG,
        "The maximum rate in bytes per second at which replicas are moved between the folders of this "
        "broker.",
        at_least(0),
        CLUSTER_WIDE,
    ),
)
