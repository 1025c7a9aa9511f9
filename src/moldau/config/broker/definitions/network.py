"""Listeners, sockets, connections and requests."""

from __future__ import annotations

from moldau.config.definition import CLUSTER_WIDE, INT, LIST, LONG, MAX_INT, PER_BROKER, STRING, ConfigKey
from moldau.config.validators import ListOf, at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        "The addresses this node listens on, as `NAME://host:port` separated by commas. An empty host means "
        "every interface, and port 0 lets the system choose one.",
        ListOf(empty_allowed=False),
        PER_BROKER,
    ),
    ConfigKey(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that clients and other nodes connect to, if they differ from `listeners`. Every "
        "client must be able to resolve and reach them.",
        ListOf(empty_allowed=False, null_allowed=True),
    ),
    ConfigKey(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener name, as `NAME:PROTOCOL` separated by commas.",
        update=PER_BROKER,
    ),
    ConfigKey(
        "inter.broker.listener.name",
        STRING,
        None,
        "The name of the listener for connections between brokers. If unset, the name of "
        "`security.inter.broker.protocol` is used.",
    ),
    ConfigKey(
        "early.start.listeners",
        LIST,
        None,
        "The listeners that open before the ACLs are loaded; until then they serve only super users. If "
        "unset, these are the controller listeners. Moldau always opens the controller listeners early, and "
        "the others once the ACLs are loaded.",
        ListOf(null_allowed=True),
    ),
    ConfigKey(
        "num.network.threads",
        INT,
        3,
        "The number of threads per listener that read requests and write responses. Moldau serves all "
        "connections from one event loop.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "num.io.threads",
        INT,
        8,
        "The number of threads that process requests, disk I/O included. Moldau processes them on one event "
        "loop and leaves slow disk I/O to a pool.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "queued.max.requests",
        INT,
        500,
        "The maximum number of queued requests before no more are read from the connections.",
        at_least(1),
    ),
    ConfigKey(
        "queued.max.request.bytes",
        LONG,
        -1,
        "The maximum size in bytes of queued requests before no more are read; -1 means no limit.",
    ),
    ConfigKey(
        "request.timeout.ms",
        INT,
        30_000,
        "The maximum time in milliseconds that this node waits for the response to a request of its own "
        "before it sends it again or fails.",
    ),
    ConfigKey(
        "socket.send.buffer.bytes",
        INT,
        102_400,
        "The size of the send buffer of each connection; -1 leaves it to the operating system.",
    ),
    ConfigKey(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        "The size of the receive buffer of each connection; -1 leaves it to the operating system.",
    ),
    ConfigKey(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        "The maximum size in bytes of a request; a connection that announces a larger one is closed.",
        at_least(1),
    ),
    ConfigKey(
        "socket.listen.backlog.size",
        INT,
        50,
        "The maximum number of connections that wait to be accepted on a listener.",
        at_least(1),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        "The initial timeout in milliseconds for opening a connection to another node; it grows with each "
        "failure.",
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        "The maximum timeout in milliseconds for opening a connection after repeated failures.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "The time in milliseconds without a request after which a connection is closed.",
    ),
    ConfigKey(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "The delay in milliseconds of the response to a failed authentication, which slows down guessing. It "
        "must be less than `connections.max.idle.ms`.",
        at_least(0),
    ),
    ConfigKey(
        "max.connections",
        INT,
        MAX_INT,
        "The maximum number of connections of this broker; at the limit, new ones wait until another closes. "
        "A new connection of the inter-broker listener takes the place of one of another listener. With "
        "`listener.name.x.` it limits one listener.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.connections.per.ip",
        INT,
        MAX_INT,
        "The maximum number of connections from one IP address. 0 is allowed together with "
        "`max.connections.per.ip.overrides`.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Limits that replace `max.connections.per.ip` for single addresses or host names, as `host:limit` "
        "separated by commas.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        "The maximum number of new connections per second; further ones wait. With `listener.name.x.` it "
        "limits one listener.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.request.partition.size.limit",
        INT,
        2000,
        "The maximum number of partitions in a DescribeTopicPartitions request or response.",
        at_least(1),
    ),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "The maximum number of incremental fetch sessions.",
        at_least(0),
    ),
    ConfigKey(
        "fetch.max.bytes",
        INT,
        57_671_680,
        "The maximum size of a fetch response in bytes, regardless of the client's `fetch.max.bytes`. A "
        "first batch that is larger is still returned whole.",
        at_least(1024),
    ),
    ConfigKey(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        "The number of completed fetch requests after which the purgatory is purged.",
    ),
    ConfigKey(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        "The number of completed produce requests after which the purgatory is purged.",
    ),
    ConfigKey(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        "The number of completed DeleteRecords requests after which the purgatory is purged.",
    ),
    ConfigKey(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        "The number of completed share fetch requests after which the purgatory is purged.",
    ),
)
