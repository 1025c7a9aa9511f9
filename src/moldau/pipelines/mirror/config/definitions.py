"""The table of settings of a flow: names, types and defaults of MirrorMaker 2, and our own.

A setting applies to all flows (`topics`) or to one (`us->eu.topics`), which takes precedence. Intervals whose
default differs from MirrorMaker 2's are marked; docs/MIRRORING.md lists the differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError

Parser = Callable[[str], Any]

STOP, RESTART, CONTINUE = "stop", "restart", "continue"
SOURCE, TARGET = "source", "target"
DEFAULT_POLICY: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class MirrorConfigError(KafkaError):
    """The configuration is invalid; the message names the setting and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, message)


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    parse: Parser
    default: str
    meaning: str


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected true or false")
    return lowered == "true"


def _number(lowest: int) -> Parser:
    def parse(text: str) -> int:
        try:
            value = int(text.strip())
        except ValueError:
            raise ValueError("expected a whole number") from None
        if value < lowest:
            raise ValueError(f"must be at least {lowest}")
        return value

    return parse


def _seconds(text: str) -> float:
    try:
        value = float(text.strip())
    except ValueError:
        raise ValueError("expected seconds") from None
    if not 0.1 <= value <= 1e9:
        raise ValueError("must be at least 0.1 seconds")
    return value


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for each in text.split(",") if (part := each.strip()))


def _one_of(*allowed: str) -> Parser:
    def parse(text: str) -> str:
        if text.strip() not in allowed:
            raise ValueError(f"must be one of: {', '.join(allowed)}")
        return text.strip()

    return parse


def _separator(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


def _policy(text: str) -> str:
    short = text.strip().rpartition(".")[2]
    for known in (DEFAULT_POLICY, IDENTITY_POLICY):
        if short == known.rpartition(".")[2]:
            return known
    raise ValueError("Java classes cannot be run; use DefaultReplicationPolicy or IdentityReplicationPolicy")


def _only(class_name: str) -> Parser:
    def parse(text: str) -> str:
        if text.strip().rpartition(".")[2] != class_name.rpartition(".")[2]:
            raise ValueError(f"Java classes cannot be run; only {class_name} is built in")
        return class_name

    return parse


_FOUND_SOON = "5"
_EXCLUDED_CONFIGS = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, log\.message\.timestamp\.before\.max\.ms, "
    r"log\.message\.timestamp\.after\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
    r"min\.insync\.replicas"
)
_MIRROR = "org.apache.kafka.connect.mirror."

_ALL = (
    Setting("enabled", _boolean, "false", "Whether to mirror source to target."),
    Setting("topics", _list, ".*", "Topics to mirror: names and regular expressions."),
    Setting("topics.exclude", _list, r"mm2.*\.internal, .*\.replica, __.*", "Topics not to mirror."),
    Setting("groups", _list, ".*", "Groups whose offsets are translated."),
    Setting("groups.exclude", _list, "console-consumer-.*, connect-.*, __.*", "Groups to leave out."),
    Setting("tasks.max", _number(1), "1", "Number of Spark tasks that copy."),
    Setting(
        "replication.factor", _number(-1), "2", "Replication factor of mirrored topics; -1: the target's."
    ),
    Setting("replication.policy.class", _policy, DEFAULT_POLICY, "How mirrored topics are named."),
    Setting("replication.policy.separator", _separator, ".", "Separator between cluster alias and topic."),
    Setting(
        "replication.policy.internal.topic.separator.enabled",
        _boolean,
        "true",
        "Whether the separator applies to internal topics, too.",
    ),
    Setting("refresh.topics.enabled", _boolean, "true", "Whether to look for new topics and partitions."),
    Setting("refresh.topics.interval.seconds", _seconds, _FOUND_SOON, "How often to look for topics."),
    Setting("refresh.groups.enabled", _boolean, "true", "Whether to look for new groups."),
    Setting("refresh.groups.interval.seconds", _seconds, _FOUND_SOON, "How often to look for groups."),
    Setting("sync.topic.configs.enabled", _boolean, "true", "Whether to copy topic configs."),
    Setting("sync.topic.configs.interval.seconds", _seconds, "600", "How often to copy them."),
    Setting("config.properties.exclude", _list, _EXCLUDED_CONFIGS, "Topic configs not to copy."),
    Setting(
        "use.defaults.from", _one_of(SOURCE, TARGET), TARGET, "Whose defaults apply to configs without value."
    ),
    Setting("sync.topic.acls.enabled", _boolean, "true", "Whether to copy read ACLs of topics."),
    Setting("sync.topic.acls.interval.seconds", _seconds, "600", "How often to copy them."),
    Setting("emit.heartbeats.enabled", _boolean, "true", "Whether to emit heartbeats."),
    Setting("emit.heartbeats.interval.seconds", _seconds, "1", "How often to emit them."),
    Setting("heartbeats.topic.replication.factor", _number(-1), "3", "Replication factor of heartbeats."),
    Setting("heartbeats.replication.enabled", _boolean, "true", "Whether to mirror heartbeats topics."),
    Setting("emit.checkpoints.enabled", _boolean, "true", "Whether to translate offsets of groups."),
    Setting("emit.checkpoints.interval.seconds", _seconds, _FOUND_SOON, "How often to translate them."),
    Setting("checkpoints.topic.replication.factor", _number(-1), "3", "Replication factor of checkpoints."),
    Setting("sync.group.offsets.enabled", _boolean, "false", "Whether to commit translated offsets."),
    Setting("sync.group.offsets.interval.seconds", _seconds, _FOUND_SOON, "How often to commit them."),
    Setting("emit.offset-syncs.enabled", _boolean, "true", "Whether to write offset syncs."),
    Setting(
        "offset-syncs.topic.location", _one_of(SOURCE, TARGET), SOURCE, "Cluster of the offset-syncs topic."
    ),
    Setting("offset-syncs.topic.replication.factor", _number(-1), "3", "Replication factor of that topic."),
    Setting("offset.storage.topic", str.strip, "", "Topic of the target with the copied source offsets."),
    Setting("offset.storage.replication.factor", _number(-1), "3", "Replication factor of that topic."),
    Setting("offset.storage.partitions", _number(1), "25", "Number of partitions of that topic."),
    Setting("offset.flush.interval.ms", _number(10), "1000", "How often copied offsets are stored."),
    Setting(
        "exactly.once.source.support",
        _one_of("disabled", "preparing", "enabled"),
        "disabled",
        "Whether records and their offsets are written in one transaction.",
    ),
    Setting("transaction.boundary.interval.ms", _number(10), "200", "Length of a transaction."),
    Setting(
        "source.topic.recreated",
        _one_of(STOP, RESTART),
        STOP,
        "What to do if a source topic was deleted and created again, or truncated.",
    ),
    Setting(
        "source.records.missing",
        _one_of(STOP, CONTINUE),
        CONTINUE,
        "What to do if retention deleted records before they were copied.",
    ),
    Setting(
        "session.timeout.ms",
        _number(100),
        "10000",
        "After how long a process that has died is replaced by one that stands by.",
    ),
    Setting("heartbeat.interval.ms", _number(10), "3000", "How often a process reports that it is alive."),
    Setting("admin.timeout.ms", _number(1), "60000", "Time limit of administrative requests."),
    Setting("consumer.poll.timeout.ms", _number(1), "1000", "How long a fetch waits for records."),
    Setting("topic.filter.class", _only(f"{_MIRROR}DefaultTopicFilter"), f"{_MIRROR}DefaultTopicFilter", ""),
    Setting("group.filter.class", _only(f"{_MIRROR}DefaultGroupFilter"), f"{_MIRROR}DefaultGroupFilter", ""),
    Setting(
        "config.property.filter.class",
        _only(f"{_MIRROR}DefaultConfigPropertyFilter"),
        f"{_MIRROR}DefaultConfigPropertyFilter",
        "",
    ),
)
SETTINGS: Final[dict[str, Setting]] = {setting.name: setting for setting in _ALL}

#: Settings of Connect's worker, which belong to a target cluster (`eu.offset.storage.topic`).
WORKER_SETTINGS: Final = frozenset(
    {
        "offset.storage.topic",
        "offset.storage.replication.factor",
        "offset.storage.partitions",
        "offset.flush.interval.ms",
        "exactly.once.source.support",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "replication.policy.class",
        "replication.policy.separator",
        "replication.policy.internal.topic.separator.enabled",
    }
)

#: Names and prefixes of MirrorMaker 2's settings that have no effect here.
WITHOUT_EFFECT: Final = frozenset(
    {
        *("config.storage.topic", "config.storage.replication.factor", "status.storage.topic"),
        *("status.storage.replication.factor", "status.storage.partitions", "group.id", "listeners"),
        *("metric.reporters", "plugin.path", "plugin.discovery", "dedicated.mode.enable.internal.rest"),
        *("rest.port", "rest.host.name", "task.shutdown.graceful.timeout.ms", "offset.flush.timeout.ms"),
        *("errors.log.enable", "errors.log.include.messages", "errors.tolerance", "errors.retry.timeout"),
        *("errors.retry.delay.max.ms", "name", "connector.class", "connector.plugin.version"),
        *("offset.lag.max", "metric.names.formats", "config.action.reload", "tasks.max.enforce"),
    }
)
#: Settings and prefixes of what would change records, which are copied as they are.
TRANSFORMATIONS: Final = ("transforms", "predicates")
#: Records are copied as bytes, so converters of other kinds are refused.
CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
