"""Rules between configs, whose values are valid alone but not together.

They are Kafka's own rules: Moldau accepts the files that Apache Kafka accepts and refuses those it refuses.
Every error names the configs, their values and the remedy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moldau.config.definition import ConfigError
from moldau.config.listeners import parse_map

if TYPE_CHECKING:
    from moldau.config.broker.config import BrokerConfig


def check_rules(config: BrokerConfig) -> None:
    for rule in (
        _node_id,
        _quorum,
        _inter_broker,
        _inter_broker_sasl,
        _roles,
        _advertised,
        _early_start,
        _logs,
        _replication,
    ):
        rule(config)
    for rule in (_connections, _group_protocols, _group_limits, _share_groups, _codecs):
        rule(config)


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise ConfigError(sentence)


def _node_id(config: BrokerConfig) -> None:
    node_id, broker_id = config["node.id"], config["broker.id"]
    _require(
        node_id == broker_id,
        f"node.id={node_id} and broker.id={broker_id} differ; they are synonyms and must be equal.",
    )


def _quorum(config: BrokerConfig) -> None:
    voters = config.quorum_voters
    _require(
        voters or config.quorum_bootstrap_servers,
        "Neither controller.quorum.voters nor controller.quorum.bootstrap.servers is set; one of them must "
        "name the controllers, for example controller.quorum.bootstrap.servers=localhost:9093.",
    )
    for voter in voters:
        _require(
            voter.host != "0.0.0.0",
            f"controller.quorum.voters names voter {voter.node_id} at 0.0.0.0, to which no node can connect.",
        )
    _require(
        "controller" in config.process_roles or not config["controller.quorum.auto.join.enable"],
        "controller.quorum.auto.join.enable=true needs the controller role in process.roles.",
    )


def _inter_broker(config: BrokerConfig) -> None:
    name = config["inter.broker.listener.name"]
    if name is None:
        return
    _require(
        "security.inter.broker.protocol" not in config.texts,
        f"inter.broker.listener.name={name} and security.inter.broker.protocol are both set; keep only one.",
    )
    _require(
        name.upper() in config.protocol_map,
        f"inter.broker.listener.name={name} is not in listener.security.protocol.map.",
    )


def _inter_broker_sasl(config: BrokerConfig) -> None:
    listener = config.inter_broker_listener_name
    if not config.protocol_map.get(listener, "").startswith("SASL_"):
        return
    mechanism = config["sasl.mechanism.inter.broker.protocol"]
    enabled = config.for_listener(listener, "sasl.enabled.mechanisms")
    _require(
        mechanism in enabled,
        f"sasl.mechanism.inter.broker.protocol={mechanism} must be included in sasl.enabled.mechanisms="
        f"{','.join(enabled)} when SASL is used for inter-broker communication.",
    )


def _roles(config: BrokerConfig) -> None:
    if config.process_roles == {"broker"}:
        _broker_alone(config)
    else:
        _controller(config)
    if config.process_roles == {"controller"}:
        _controller_alone(config)


def _broker_alone(config: BrokerConfig) -> None:
    _require(
        config.node_id not in {voter.node_id for voter in config.quorum_voters},
        f"node.id={config.node_id} is one of controller.quorum.voters, but process.roles=broker; "
        "give the node another id or the controller role.",
    )
    for endpoint in config.controller_listeners:
        raise ConfigError(
            f"listeners contains {endpoint}, a controller listener (controller.listener.names), but "
            "process.roles=broker."
        )
    for name in config.controller_listener_names:
        _require(
            name.upper() in config.protocol_map,
            f"controller.listener.names has {name}, but listener.security.protocol.map does not say which "
            f"protocol it speaks; add {name.upper()}:PLAINTEXT to it.",
        )


def _controller(config: BrokerConfig) -> None:
    voters = {voter.node_id for voter in config.quorum_voters}
    _require(
        not voters or config.node_id in voters,
        f"node.id={config.node_id} is missing from controller.quorum.voters="
        f"{','.join(config.entries('controller.quorum.voters'))}, but process.roles has the controller role.",
    )
    listening = {endpoint.name for endpoint in config.listeners}
    for name in config.controller_listener_names:
        _require(
            name in listening,
            f"controller.listener.names has {name}, but listeners has no listener of that name; it has "
            f"{', '.join(sorted(listening))}. Names are written in capitals.",
        )


def _controller_alone(config: BrokerConfig) -> None:
    for endpoint in config.broker_listeners:
        raise ConfigError(
            f"listeners contains {endpoint}, which is not in controller.listener.names, but "
            "process.roles=controller: such a node has only controller listeners."
        )
    name = config["inter.broker.listener.name"]
    _require(
        name is None or name not in config.controller_listener_names,
        f"inter.broker.listener.name={name} is also in controller.listener.names; brokers need a listener of "
        "their own.",
    )


def _advertised(config: BrokerConfig) -> None:
    if "broker" in config.process_roles:
        _advertised_by_broker(config)
    for endpoint in (*config.advertised_listeners, *config.advertised_controller_listeners):
        _require(
            endpoint.host != "0.0.0.0",
            f"advertised.listeners would make clients connect to {endpoint}; 0.0.0.0 is an address to "
            "listen on, not one to connect to. Set advertised.listeners to an address clients can reach.",
        )


def _advertised_by_broker(config: BrokerConfig) -> None:
    advertised = {endpoint.name for endpoint in config.advertised_listeners}
    _require(
        advertised,
        "No listener is available to clients: every listener of advertised.listeners or listeners is also in "
        "controller.listener.names.",
    )
    inter_broker = config.inter_broker_listener_name
    _require(
        inter_broker in advertised,
        f"The inter-broker listener is {inter_broker} (inter.broker.listener.name), but only "
        f"{', '.join(sorted(advertised))} can be reached (advertised.listeners).",
    )
    missing = advertised - {endpoint.name for endpoint in config.listeners}
    _require(
        not missing,
        f"advertised.listeners has {', '.join(sorted(missing))}, but listeners has no listener of that name.",
    )


def _early_start(config: BrokerConfig) -> None:
    names = {endpoint.name for endpoint in config.listeners} | set(config.controller_listener_names)
    for name in config.entries("early.start.listeners"):
        _require(
            name in names,
            f"early.start.listeners has {name}, but the only listeners are {', '.join(sorted(names))}.",
        )


def _logs(config: BrokerConfig) -> None:
    topics = config.topic_default_values
    _require(_number(topics["segment.ms"]) >= 1, f"log.roll.ms={config['log.roll.ms']} must be at least 1.")
    _require(
        _number(topics["segment.jitter.ms"]) >= 0,
        f"log.roll.jitter.ms={config['log.roll.jitter.ms']} must be at least 0.",
    )
    _require(
        topics["retention.ms"] != 0,
        "log.retention.ms, log.retention.minutes or log.retention.hours is 0, which would keep nothing; "
        "the time must be at least 1, or -1 for no limit.",
    )
    threads, size = config["log.cleaner.threads"], config["log.cleaner.dedupe.buffer.size"]
    _require(
        threads > 0 and size // threads > 1024 * 1024,
        f"log.cleaner.dedupe.buffer.size={size} must be more than 1 MiB for each of log.cleaner.threads="
        f"{threads}, and there must be at least one thread.",
    )
    cordoned = config.entries("cordoned.log.dirs")
    unknown = [directory for directory in cordoned if directory not in config.log_dirs]
    _require(
        cordoned == ("*",) or not unknown,
        f"cordoned.log.dirs={','.join(cordoned)} must name folders of log.dirs={','.join(config.log_dirs)}, "
        "or be * alone.",
    )


def _replication(config: BrokerConfig) -> None:
    wait = config["replica.fetch.wait.max.ms"]
    for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        _require(
            wait <= config[name],
            f"replica.fetch.wait.max.ms={wait} must not be more than {name}={config[name]}.",
        )


def _connections(config: BrokerConfig) -> None:
    queued, largest = config["queued.max.request.bytes"], config["socket.request.max.bytes"]
    _require(
        queued <= 0 or queued >= largest,
        f"queued.max.request.bytes={queued} must be at least socket.request.max.bytes={largest}, or -1 for "
        "no limit.",
    )
    overrides = config.max_connections_per_ip_overrides
    _require(
        config["max.connections.per.ip"] or overrides,
        "max.connections.per.ip=0 needs exceptions in max.connections.per.ip.overrides.",
    )
    idle, delay = config["connections.max.idle.ms"], config["connection.failed.authentication.delay.ms"]
    _require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} must be less than "
        f"connections.max.idle.ms={idle}.",
    )


def connection_overrides(config: BrokerConfig) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`."""
    setting = "max.connections.per.ip.overrides"
    limits = {}
    for host, limit in parse_map(setting, config[setting]).items():
        _require(
            re.fullmatch(r"[0-9a-zA-Z\-%._:]*", host) and re.fullmatch(r"[+-]?\d{1,10}", limit),
            f"{setting} has the entry '{host}:{limit}'; each entry must have the form host:number.",
        )
        limits[host] = int(limit)
    return limits


def _group_protocols(config: BrokerConfig) -> None:
    protocols = config.entries("group.coordinator.rebalance.protocols")
    _require(
        "classic" in protocols,
        f"group.coordinator.rebalance.protocols={','.join(protocols)} must contain classic, which cannot be "
        "switched off.",
    )
    assignors = config.entries("group.share.assignors")
    _require(
        len(assignors) == 1,
        f"group.share.assignors={','.join(assignors)} must contain exactly one assignor.",
    )


def _at_most(config: BrokerConfig, lower: str, higher: str) -> None:
    _require(
        config[lower] <= config[higher],
        f"{lower}={config[lower]} must not be more than {higher}={config[higher]}.",
    )


def _group_limits(config: BrokerConfig) -> None:
    for kind in ("consumer", "share", "streams"):
        for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            _at_most(config, f"group.{kind}.min.{name}", f"group.{kind}.{name}")
            _at_most(config, f"group.{kind}.{name}", f"group.{kind}.max.{name}")
        session, heartbeat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
        _require(
            config[heartbeat] < config[session],
            f"{heartbeat}={config[heartbeat]} must be less than {session}={config[session]}.",
        )
    _at_most(config, "group.streams.num.standby.replicas", "group.streams.max.standby.replicas")


def _share_groups(config: BrokerConfig) -> None:
    for name in ("delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks"):
        _at_most(config, f"group.share.min.{name}", f"group.share.{name}")
        _at_most(config, f"group.share.{name}", f"group.share.max.{name}")
    _at_most(config, "group.share.max.size", "group.share.max.share.sessions")


def _codecs(config: BrokerConfig) -> None:
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        _require(
            0 <= config[name] <= 4,
            f"{name}={config[name]} must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd).",
        )


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0
