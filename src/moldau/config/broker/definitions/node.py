"""The node itself: its id and roles, the metadata quorum, heartbeats, threads, policies and metrics."""

from __future__ import annotations

from moldau.config.definition import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    MAX_LONG,
    REQUIRED,
    STRING,
    ConfigKey,
)
from moldau.config.quorum_voters import ServerList, VoterList
from moldau.config.validators import ListOf, at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "process.roles",
        LIST,
        REQUIRED,
        "What this node is: `broker`, `controller`, or both, separated by a comma.",
        ListOf(("broker", "controller"), empty_allowed=False),
    ),
    ConfigKey(
        "node.id",
        INT,
        REQUIRED,
        "The number of this node, different from that of every other node of the cluster.",
        at_least(0),
    ),
    ConfigKey("broker.id", INT, -1, "The older name of `node.id`; when both are set they must be the same."),
    ConfigKey(
        "broker.rack",
        STRING,
        None,
        "The rack, room or zone this broker stands in. Replicas of a partition are spread over racks, and "
        "consumers that name their rack may read from a replica nearby.",
    ),
    ConfigKey(
        "controller.listener.names",
        LIST,
        REQUIRED,
        "The listeners that controllers use among themselves and brokers use to reach a controller, by "
        "name. A controller listens on all of them, and the first is the one a broker connects to.",
        ListOf(empty_allowed=False),
    ),
    ConfigKey(
        "controller.quorum.voters",
        LIST,
        (),
        "The fixed members of the metadata quorum as `id@host:port`. Leave it empty for a quorum whose "
        "members may change, and set `controller.quorum.bootstrap.servers` instead.",
        VoterList(),
    ),
    ConfigKey(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Where to look for the metadata quorum, as `host:port`. Use it when the quorum was formatted with "
        "members of its own.",
        ServerList(),
    ),
    ConfigKey(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        "Whether a controller that is not a member of the metadata quorum asks to become one.",
    ),
    ConfigKey(
        "controller.quorum.election.timeout.ms",
        INT,
        1000,
        "How long a candidate waits for votes before it starts the next election.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        "The longest pause before a candidate tries again after an election without a winner; the pauses "
        "are random so that candidates do not keep meeting.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        "How long a quorum member waits for a successful fetch from the leader before it stands for "
        "election, and how long a leader stays leader without fetches from a majority.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        "How long a quorum member waits for an answer from another one before it gives up the request.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        "The pause before a failed request to another quorum member is sent again.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.append.linger.ms",
        INT,
        25,
        "How long the leader of the metadata quorum gathers records before it writes them in one go. "
        "Larger values mean fewer, larger writes.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.fetch.max.bytes",
        INT,
        1_048_576,
        "How many bytes of the metadata log one fetch asks for at most.",
        at_least(1),
    ),
    ConfigKey(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1_048_576,
        "How many bytes of a metadata snapshot one fetch asks for at most.",
        at_least(1),
    ),
    ConfigKey(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        "How long the controller waits on the connection to a broker before it is considered broken.",
    ),
    ConfigKey(
        "metadata.log.dir",
        STRING,
        None,
        "The folder of the metadata log. If unset, the first of `log.dirs` is used.",
    ),
    ConfigKey(
        "metadata.log.segment.bytes",
        INT,
        1_073_741_824,
        "The size at which a segment of the metadata log is closed and the next one begun.",
        at_least(8_388_608),
    ),
    ConfigKey(
        "metadata.log.segment.ms",
        LONG,
        604_800_000,
        "The age at which a segment of the metadata log is closed even if it is not full.",
    ),
    ConfigKey(
        "metadata.max.retention.bytes",
        LONG,
        104_857_600,
        "How large metadata log and snapshots together may become before old ones are deleted. What "
        "follows the newest snapshot always stays.",
    ),
    ConfigKey(
        "metadata.max.retention.ms",
        LONG,
        604_800_000,
        "How old a segment or snapshot of the metadata may become before it is deleted. What follows the "
        "newest snapshot always stays.",
    ),
    ConfigKey(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20_971_520,
        "After how many bytes of new metadata records a snapshot is written.",
        at_least(1),
    ),
    ConfigKey(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        "After how long a snapshot of the metadata is written when anything changed since the last one; 0 "
        "turns this off.",
        at_least(0),
    ),
    ConfigKey(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        "How often the active controller writes a record without content to a quiet metadata log, so that "
        "everybody sees it is alive; 0 turns this off.",
        at_least(0),
    ),
    ConfigKey(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        "Overrides the size of metadata log segments without the usual minimum; for tests.",
        internal=True,
    ),
    ConfigKey(
        "internal.metadata.max.batch.size.in.bytes",
        INT,
        8_388_608,
        "The largest batch the metadata log takes; for tests.",
        internal=True,
    ),
    ConfigKey(
        "internal.metadata.delete.delay.millis",
        LONG,
        60_000,
        "How long a deleted segment of the metadata log stays on disk; for tests.",
        internal=True,
    ),
    ConfigKey(
        "broker.heartbeat.interval.ms",
        INT,
        2000,
        "How often a broker tells the active controller that it is alive.",
    ),
    ConfigKey(
        "broker.session.timeout.ms",
        INT,
        9000,
        "How long the controller waits for a heartbeat before it fences the broker and moves the "
        "leadership of its partitions.",
    ),
    ConfigKey(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        "How long a starting broker tries to register with the controller before it gives up.",
    ),
    ConfigKey(
        "server.max.startup.time.ms",
        LONG,
        MAX_LONG,
        "How long a node may take to start before it stops with an error.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a broker that is asked to stop first hands the leadership of its partitions to others.",
    ),
    ConfigKey(
        "controller.performance.sample.period.ms",
        LONG,
        60_000,
        "How often the controller sums up how long its events took.",
        at_least(100),
        internal=True,
    ),
    ConfigKey(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        "An event of the controller that takes longer than this is logged each time.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "background.threads",
        INT,
        10,
        "How many threads do background work such as deleting files.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "create.topic.policy.class.name",
        CLASS,
        None,
        "A Java class that judges every request to create a topic. Moldau cannot run it and refuses to "
        "start rather than leave it out.",
    ),
    ConfigKey(
        "alter.config.policy.class.name",
        CLASS,
        None,
        "A Java class that judges every change of configuration. Moldau cannot run it and refuses to "
        "start rather than leave it out.",
    ),
    ConfigKey(
        "config.providers",
        LIST,
        (),
        "Short names of classes that supply values written as `${provider:path:key}`.",
        ListOf(),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "unstable.api.versions.enable",
        BOOLEAN,
        False,
        "Whether versions of the protocol that are still being worked on are offered to clients; for "
        "development.",
        internal=True,
    ),
    ConfigKey(
        "unstable.feature.versions.enable",
        BOOLEAN,
        False,
        "Whether feature levels that are still being worked on may be used; for development.",
        internal=True,
    ),
    ConfigKey(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Java classes that receive metrics. Moldau offers its metrics over Prometheus and does not load "
        "them.",
        ListOf(),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "kafka.metrics.reporters",
        LIST,
        (),
        "Java classes that receive the broker's older kind of metrics. Moldau offers its metrics over "
        "Prometheus and does not load them.",
        ListOf(),
    ),
    ConfigKey(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        "How often the classes of `kafka.metrics.reporters` are given metrics.",
        at_least(1),
    ),
    ConfigKey(
        "metrics.num.samples",
        INT,
        2,
        "Over how many windows of `metrics.sample.window.ms` a rate or an average is computed.",
        at_least(1),
    ),
    ConfigKey(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        "The length of one window in which samples of a metric are gathered.",
        at_least(1),
    ),
    ConfigKey("metrics.recording.level", STRING, "INFO", "How much is measured: INFO, DEBUG or TRACE."),
    ConfigKey(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        "The largest report of its own metrics that a client may push to the broker.",
        at_least(1),
    ),
)
