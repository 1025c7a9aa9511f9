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
        "How often the controller looks for partitions without a leader that may get one uncleanly.",
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
        "How often the controller looks for partitions not led by their preferred replica.",
        at_least(1),
    ),
    ConfigKey(
        "num.replica.fetchers",
        INT,
        1,
        "How many connections fetch from each other broker.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "How many threads move replicas between the folders of this broker. If unset, as many as there "
        "are folders.",
    ),
    ConfigKey(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "A follower that has not caught up with the leader for this long is taken out of the in-sync "
        "replicas.",
    ),
    ConfigKey(
        "replica.fetch.min.bytes",
        INT,
        1,
        "How many bytes a follower waits for, up to `replica.fetch.wait.max.ms`.",
    ),
    ConfigKey(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "How long a follower's fetch waits for `replica.fetch.min.bytes`. It must not exceed "
        "`replica.lag.time.max.ms`, or quiet partitions would fall out of sync.",
    ),
    ConfigKey(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "How many bytes of one partition a follower fetches at once. A first batch that is larger is "
        "still returned whole.",
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        "How many bytes of all partitions a follower fetches at once.",
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "How long a follower pauses after an error from the leader.",
        at_least(0),
    ),
    ConfigKey(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "How long a follower waits for the leader's answer. It must not be less than "
        "`replica.fetch.wait.max.ms`.",
    ),
    ConfigKey(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        "The receive buffer of a follower's connection to the leader.",
    ),
    ConfigKey(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often the high watermarks are written to disk.",
    ),
    ConfigKey(
        "replica.selector.class",
        STRING,
        None,
        "The Java class that chooses which replica a consumer reads from.",
    ),
    ConfigKey("quota.window.num", INT, 11, "Over how many windows client quotas are measured.", at_least(1)),
    ConfigKey(
        "quota.window.size.seconds",
        INT,
        1,
        "The length of one window in which client quotas are measured.",
        at_least(1),
    ),
    ConfigKey(
        "replication.quota.window.num",
        INT,
        11,
        "Over how many windows replication quotas are measured.",
        at_least(1),
    ),
    ConfigKey(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "The length of one window in which replication quotas are measured.",
        at_least(1),
    ),
    ConfigKey(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "Over how many windows the quota for moving replicas between folders is measured.",
        at_least(1),
    ),
    ConfigKey(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "The length of one window in which the quota for moving replicas between folders is measured.",
        at_least(1),
    ),
    ConfigKey(
        "controller.quota.window.num",
        INT,
        11,
        "For how many windows the quota for changes to topics (`controller_mutation_rate`) is saved up.",
        at_least(1),
    ),
    ConfigKey(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "The length of one window in which the quota for changes to topics is measured.",
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
        "How many bytes per second this broker sends to throttled followers at most.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "follower.replication.throttled.rate",
        LONG,
        MAX_LONG,
        "How many bytes per second this broker fetches for throttled replicas at most.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        MAX_LONG,
        "How many bytes per second are moved between the folders of this broker at most.",
        at_least(0),
        CLUSTER_WIDE,
    ),
)
