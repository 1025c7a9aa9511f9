"""Listeners, sockets, connections and requests."""

from __future__ import annotations

from moldau.config.definition import CLUSTER_WIDE, INT, LIST, LONG, MAX_INT, PER_BROKER, STRING, ConfigKey
from moldau.config.validators import ListOf, at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        "Where this node listens, as `NAME://host:port` separated by commas. An empty host means every "
        "interface, and port 0 lets the system choose one.",
        ListOf(empty_allowed=False),
        PER_BROKER,
    ),
    ConfigKey(
        "advertised.listeners",
        LIST,
        None,
        "The addresses under which clients and other nodes find this node, when they differ from "
        "`listeners`. Every client must be able to resolve and reach them.",
        ListOf(empty_allowed=False, null_allowed=True),
    ),
    ConfigKey(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Which security protocol each listener name stands for, as `NAME:PROTOCOL` separated by commas.",
        update=PER_BROKER,
    ),
    ConfigKey(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener that brokers use to reach each other, by name. If unset, the name of "
        "`security.inter.broker.protocol` is used.",
    ),
    ConfigKey(
        "early.start.listeners",
        LIST,
        None,
        "Listeners that open before the ACLs are loaded; until then they serve only super users. If unset, "
        "these are the controller listeners. Moldau always opens the controller listeners early, and the "
        "others once the ACLs are loaded.",
        ListOf(null_allowed=True),
    ),
    ConfigKey(
        "num.network.threads",
        INT,
        3,
        "How many threads per listener read requests and write answers. Moldau serves all connections "
        "from one event loop.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "num.io.threads",
        INT,
        8,
        "How many threads carry out requests, disk work included. Moldau carries them out on one event "
        "loop and leaves slow disk work to a pool.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "queued.max.requests",
        INT,
        500,
        "How many requests may wait to be carried out before no more are read from the connections.",
        at_least(1),
    ),
    ConfigKey(
        "queued.max.request.bytes",
        LONG,
        -1,
        "How many bytes of requests may wait to be carried out before no more are read; -1 means no limit.",
    ),
    ConfigKey(
        "request.timeout.ms",
        INT,
        30_000,
        "How long this node waits for an answer to a request of its own before it sends it again or fails.",
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
        "The largest request that is read; a connection that announces a larger one is closed.",
        at_least(1),
    ),
    ConfigKey(
        "socket.listen.backlog.size",
        INT,
        50,
        "How many connections may wait to be accepted on a listener.",
        at_least(1),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        "How long this node tries to open a connection to another one at first; the time grows with each "
        "failure.",
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        "The longest time an attempt to open a connection may take after many failures.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "After how long without a request a connection is closed.",
    ),
    ConfigKey(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long the answer to a failed authentication is held back, which slows down guessing. It must "
        "be less than `connections.max.idle.ms`.",
        at_least(0),
    ),
    ConfigKey(
        "max.connections",
        INT,
        MAX_INT,
        "How many connections this broker holds at once; when there are as many, new ones wait until "
        "another closes. A new connection of the inter-broker listener takes the place of one of another "
        "listener. With `listener.name.x.` it limits one listener.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.connections.per.ip",
        INT,
        MAX_INT,
        "How many connections one client address may hold. 0 is allowed together with "
        "`max.connections.per.ip.overrides`.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Other limits for some addresses or host names, as `host:limit` separated by commas.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        "How many new connections per second this broker accepts; more wait. With `listener.name.x.` it "
        "limits one listener.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "max.request.partition.size.limit",
        INT,
        2000,
        "How many partitions one request for partition descriptions may name or return.",
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
        "The most bytes one answer to a fetch contains, whatever the client asks for. A first batch that "
        "is larger is still returned whole.",
        at_least(1024),
    ),
    ConfigKey(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        "After how many finished fetches the list of waiting ones is tidied up.",
    ),
    ConfigKey(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        "After how many finished produce requests the list of waiting ones is tidied up.",
    ),
    ConfigKey(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        "After how many finished requests to delete records the list of waiting ones is tidied up.",
    ),
    ConfigKey(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        "After how many finished share fetches the list of waiting ones is tidied up.",
    ),
)
