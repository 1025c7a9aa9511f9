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
        "The roles of this node: `broker`, `controller`, or both, separated by a comma.",
        ListOf(("broker", "controller"), empty_allowed=False),
    ),
    ConfigKey(
        "node.id",
        INT,
        REQUIRED,
        "The id of this node, unique in the cluster.",
        at_least(0),
    ),
    ConfigKey("broker.id", INT, -1, "The older name of `node.id`; if both are set, they must be equal."),
    ConfigKey(
        "broker.rack",
        STRING,
        None,
        "The rack, room or zone of this broker. Replicas of a partition are spread over racks, and consumers "
        "that name their rack may read from a replica nearby.",
    ),
    ConfigKey(
        "controller.listener.names",
        LIST,
        REQUIRED,
        "The names of the listeners for connections between controllers and from brokers to controllers. A "
        "controller listens on all of them; brokers connect to the first.",
        ListOf(empty_allowed=False),
    ),
    ConfigKey(
        "controller.quorum.voters",
        LIST,
        (),
        "The static voters of the metadata quorum as `id@host:port`. Leave it empty for a dynamic quorum, "
        "and set `controller.quorum.bootstrap.servers` instead.",
        VoterList(),
    ),
    ConfigKey(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "The addresses for discovering the metadata quorum, as `host:port`. Use it with a dynamic quorum.",
        ServerList(),
    ),
    ConfigKey(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        "Whether a controller that is not a voter of the metadata quorum asks to become one.",
    ),
    ConfigKey(
        "controller.quorum.election.timeout.ms",
        INT,
        1000,
        "The maximum time in milliseconds that a candidate waits for votes before it starts the next "
        "election.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        "The maximum backoff in milliseconds of a candidate after an election without a winner. The backoff "
        "is random, so that candidates do not collide again.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        "The maximum time in milliseconds without a successful fetch from the leader before a voter starts "
        "an election, and without fetches from a majority before the leader resigns.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        "The maximum time in milliseconds that a quorum member waits for the response of another one.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        "The time in milliseconds before a failed request to another quorum member is sent again.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.append.linger.ms",
        INT,
        25,
        "The time in milliseconds that the quorum leader gathers records before it writes them at once. "
        "Higher values mean fewer, larger writes.",
        at_least(0),
    ),
    ConfigKey(
        "controller.quorum.fetch.max.bytes",
        INT,
        1_048_576,
        "The maximum number of bytes of the metadata log in one fetch.",
        at_least(1),
    ),
    ConfigKey(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1_048_576,
        "The maximum number of bytes of a metadata snapshot in one fetch.",
        at_least(1),
    ),
    ConfigKey(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        "The socket timeout in milliseconds of connections from the controller to brokers.",
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
        "The size in bytes at which a segment of the metadata log is closed and the next one begun.",
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
        "The maximum size in bytes of metadata log and snapshots together before old ones are deleted. The "
        "newest snapshot and the log after it are always retained.",
    ),
    ConfigKey(
        "metadata.max.retention.ms",
        LONG,
        604_800_000,
        "The maximum age in milliseconds of a metadata segment or snapshot before it is deleted. The newest "
        "snapshot and the log after it are always retained.",
    ),
    ConfigKey(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20_971_520,
        "The number of bytes of new metadata records after which a snapshot is written.",
        at_least(1),
    ),
    ConfigKey(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        "The maximum time in milliseconds between snapshots of the metadata if records were written since "
        "the last one; 0 disables it.",
        at_least(0),
    ),
    ConfigKey(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        "The interval at which the active controller writes a no-op record to an idle metadata log, so that "
        "other nodes see that it is alive; 0 disables it.",
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
        "The maximum size in bytes of a batch of the metadata log; for tests.",
        internal=True,
    ),
    ConfigKey(
        "internal.metadata.delete.delay.millis",
        LONG,
        60_000,
        "The time in milliseconds before the files of a deleted metadata segment are removed; for tests.",
        internal=True,
    ),
    ConfigKey(
        "broker.heartbeat.interval.ms",
        INT,
        2000,
        "The interval between broker heartbeats to the active controller.",
    ),
    ConfigKey(
        "broker.session.timeout.ms",
        INT,
        9000,
        "The maximum time in milliseconds without a heartbeat before the controller fences the broker and "
        "moves the leadership of its partitions.",
    ),
    ConfigKey(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        "The maximum time in milliseconds that a starting broker tries to register with the controller.",
    ),
    ConfigKey(
        "server.max.startup.time.ms",
        LONG,
        MAX_LONG,
        "The maximum time in milliseconds for the startup of a node before it stops with an error.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a broker hands over the leadership of its partitions before it stops.",
    ),
    ConfigKey(
        "controller.performance.sample.period.ms",
        LONG,
        60_000,
        "The interval at which the controller summarizes the duration of its events.",
        at_least(100),
        internal=True,
    ),
    ConfigKey(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        "The duration in milliseconds above which every event of the controller is logged.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "background.threads",
        INT,
        10,
        "The number of threads for background tasks such as deleting files.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "create.topic.policy.class.name",
        CLASS,
        None,
        "A Java class that validates every request to create a topic. Moldau cannot run it and refuses to "
        "start rather than ignore it.",
    ),
    ConfigKey(
        "alter.config.policy.class.name",
        CLASS,
        None,
        "A Java class that validates every change of configuration. Moldau cannot run it and refuses to "
        "start rather than ignore it.",
    ),
    ConfigKey(
        "config.providers",
        LIST,
        (),
        "The names of the config providers, which supply values written as `${provider:path:key}`.",
        ListOf(),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "unstable.api.versions.enable",
        BOOLEAN,
        False,
        "Whether unreleased API versions are offered to clients; for development.",
        internal=True,
    ),
    ConfigKey(
        "unstable.feature.versions.enable",
        BOOLEAN,
        False,
        "Whether unreleased feature levels may be used; for development.",
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
        "The interval at which metrics are reported to the classes of `kafka.metrics.reporters`.",
        at_least(1),
    ),
    ConfigKey(
        "metrics.num.samples",
        INT,
        2,
        "The number of windows of `metrics.sample.window.ms` over which a rate or an average is computed.",
        at_least(1),
    ),
    ConfigKey(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        "The length in milliseconds of the window of a metrics sample.",
        at_least(1),
    ),
    ConfigKey(
        "metrics.recording.level",
        STRING,
        "INFO",
        "The most detailed recording level of metrics: INFO, DEBUG or TRACE.",
    ),
    ConfigKey(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        "The maximum size in bytes of a client's telemetry push.",
        at_least(1),
    ),
)
