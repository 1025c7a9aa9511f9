"""The settings of a worker, with Kafka Connect's names and defaults.

| setting | default | meaning |
|---|---|---|
| `bootstrap.servers` | | brokers of the cluster |
| `key.converter`, `value.converter` | `JsonConverter` for `moldau connect` | converters of connectors without their own |
| `header.converter` | `SimpleHeaderConverter` | converter of headers |
| `offset.flush.interval.ms` | 60000 | interval between stores of offsets |
| `task.shutdown.graceful.timeout.ms` | 5000 | time for tasks to stop before they are interrupted |
| `listeners` | `http://127.0.0.1:8083` | addresses of the REST API |
| `rest.advertised.host.name`, `.port`, `.listener` | of the listener | address for other workers |
| `config.providers` | | providers of secrets, see `providers` |
| `topic.creation.enable` | true | whether tasks create topics by `topic.creation.*` of connectors |
| `topic.tracking.enable`, `topic.tracking.allow.reset` | true | whether topics of connectors are tracked, may be reset |
| `offset.storage.file.filename` | | standalone: file of source offsets |
| `group.id` | | distributed: name of the group of workers |
| `config.storage.topic`, `offset.storage.topic`, `status.storage.topic` | | distributed: topics of the state |
| `….replication.factor`, `….partitions` | 3; 25 offsets, 5 statuses | how these topics are created |
| `session.timeout.ms`, `heartbeat.interval.ms`, `rebalance.timeout.ms` | 10000, 3000, 60000 | membership |
| `scheduled.rebalance.max.delay.ms` | 300000 | how long work of a lost worker waits for its return |
| `connect.protocol` | sessioned | sessioned, or compatible with Kafka Connect 2.3; eager is not supported |
| `exactly.once.source.support` | disabled | disabled, preparing or enabled |
| `inter.worker.key.ttl.ms` | 3600000 | age at which the key of requests between workers is replaced |
| `connector.client.config.override.policy`, `….allowlist` | All | see `overrides` |
| `plugin.path` | | folders of Python packages with connectors, and of driver jars for Spark |
| `tasks.host` | auto | spark: tasks are Spark tasks. threads: threads of the worker. auto: Spark if Java and PySpark are installed |
| `spark.master` | `local[256]` | where Spark runs; every running task holds a slot |
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
)
from moldau.pipelines.connect.config.misspellings import message, misspelt
from moldau.pipelines.connect.config.overrides import ALLOWLIST, POLICY, OverridePolicy
from moldau.pipelines.connect.data.errors import ConfigError

#: Settings that protect a worker of Kafka Connect and do not protect ours → what to do instead.
_REFUSED: Final = {
    "rest.extension.classes": "Classes of Java are not loaded. Remove the setting, and protect the REST API "
    "with authentication.method=BASIC and authentication.users.file.",
    "admin.listeners": "The endpoints below /admin are served by all listeners. Remove the setting, and "
    "restrict /admin in a reverse proxy.",
}

DEFAULT_PORT: Final = 8083
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
SESSIONED, COMPATIBLE = "sessioned", "compatible"

_INT, _LONG, _STRING, _BOOLEAN = ConfigType.INT, ConfigType.LONG, ConfigType.STRING, ConfigType.BOOLEAN


def _common() -> ConfigDef:
    return _defined(
        ("bootstrap.servers", ConfigType.LIST, NO_DEFAULT, None),
        ("key.converter", ConfigType.CLASS, NO_DEFAULT, None),
        ("value.converter", ConfigType.CLASS, NO_DEFAULT, None),
        ("header.converter", ConfigType.CLASS, None, None),
        ("offset.flush.interval.ms", _LONG, 60_000, Range(least=1)),
        ("task.shutdown.graceful.timeout.ms", _LONG, 5000, Range(least=0)),
        ("topic.creation.enable", _BOOLEAN, True, None),
        ("topic.tracking.enable", _BOOLEAN, True, None),
        ("topic.tracking.allow.reset", _BOOLEAN, True, None),
        ("tasks.host", _STRING, "auto", ValidString(("auto", "spark", "threads"))),
        ("spark.master", _STRING, "local[256]", NonEmptyString()),
    )


def _standalone() -> ConfigDef:
    return _defined(("offset.storage.file.filename", _STRING, NO_DEFAULT, NonEmptyString()), base=_common())


def _distributed() -> ConfigDef:
    protocols = ValidString((COMPATIBLE, SESSIONED), ignore_case=True)
    exactly_once = ValidString(("DISABLED", "PREPARING", "ENABLED"), ignore_case=True)
    replicas = _Replicas()
    return _defined(
        ("group.id", _STRING, NO_DEFAULT, NonEmptyString()),
        ("config.storage.topic", _STRING, NO_DEFAULT, NonEmptyString()),
        ("offset.storage.topic", _STRING, NO_DEFAULT, NonEmptyString()),
        ("status.storage.topic", _STRING, NO_DEFAULT, NonEmptyString()),
        ("config.storage.replication.factor", ConfigType.SHORT, 3, replicas),
        ("offset.storage.replication.factor", ConfigType.SHORT, 3, replicas),
        ("status.storage.replication.factor", ConfigType.SHORT, 3, replicas),
        ("offset.storage.partitions", _INT, 25, replicas),
        ("status.storage.partitions", _INT, 5, replicas),
        ("session.timeout.ms", _INT, 10_000, Range(least=1)),
        ("heartbeat.interval.ms", _INT, 3000, Range(least=1)),
        ("rebalance.timeout.ms", _INT, 60_000, Range(least=1)),
        ("scheduled.rebalance.max.delay.ms", _INT, 300_000, Range(least=0)),
        ("connect.protocol", _STRING, SESSIONED, protocols),
        ("exactly.once.source.support", _STRING, "disabled", exactly_once),
        ("inter.worker.key.ttl.ms", _INT, 3_600_000, Range(least=0)),
        base=_common(),
    )


#: Settings that other modules, or Kafka Connect alone, read.
_OTHERS: Final = (
    "listeners",
    "rest.advertised.host.name",
    "rest.advertised.port",
    "rest.advertised.listener",
    "rest.extension.classes",
    "admin.listeners",
    "response.http.headers.config",
    POLICY,
    ALLOWLIST,
    "config.providers",
    "plugin.path",
    "plugin.discovery",
    "offset.flush.timeout.ms",
    "security.protocol",
    "client.id",
)


def _check_names(properties: Mapping[str, str], definition: ConfigDef) -> None:
    """Raise `ConfigError` for a name that is almost a known one, or whose protection would be missing."""
    for name, remedy in _REFUSED.items():
        if properties.get(name, "").strip():
            raise ConfigError.invalid(name, properties[name], remedy)
    known = {*definition.keys, *_standalone().keys, *_distributed().keys, *_OTHERS}
    for name, meant in misspelt(properties, known).items():
        raise ConfigError(message(name, meant))


def _defined(*rows: tuple[str, ConfigType, Any, Any], base: ConfigDef | None = None) -> ConfigDef:
    definition = ConfigDef(base)
    for name, type, default, validator in rows:
        definition.define(name, type, default, Importance.MEDIUM, "", validator=validator)
    return definition


class _Replicas:
    """A positive number, or -1 for the brokers' default."""

    def __call__(self, name: str, value: Any) -> None:
        if value != -1:
            Range(least=1)(name, value)


@dataclass(frozen=True, slots=True)
class StorageTopic:
    """A topic of the workers' state, and how it is created."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    #: The setting that names it.
    setting: str


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The group of distributed workers."""

    group_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    max_delay_ms: int
    protocol: str
    key_ttl_ms: int


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    #: All properties of the worker; they may contain secrets.
    properties: Mapping[str, str] = field(repr=False)
    shutdown_timeout_s: float
    overrides: OverridePolicy
    topic_tracking: bool
    topic_tracking_reset: bool
    tasks_host: str
    spark_master: str
    #: The file of a standalone worker.
    offset_file: Path | None = None
    group: GroupSettings | None = None
    config_topic: StorageTopic | None = None
    offset_topic: StorageTopic | None = None
    status_topic: StorageTopic | None = None
    exactly_once: bool = False
    #: Whether a new leader fences earlier ones (`preparing` and `enabled`).
    fences_leaders: bool = False

    @classmethod
    def standalone(cls, properties: Mapping[str, str]) -> WorkerSettings:
        """Read the settings of a standalone worker; `ConfigError` names an invalid one."""
        _check_names(properties, _standalone())
        values = _standalone().parse(properties)
        return cls(**_shared(properties, values), offset_file=Path(values["offset.storage.file.filename"]))

    @classmethod
    def distributed(cls, properties: Mapping[str, str]) -> WorkerSettings:
        """Read the settings of a distributed worker; `ConfigError` names an invalid one."""
        _check_names(properties, _distributed())
        values = _distributed().parse(properties)
        return cls(
            **_shared(properties, values),
            group=_group(values),
            config_topic=_storage_topic(properties, values, "config"),
            offset_topic=_storage_topic(properties, values, "offset"),
            status_topic=_storage_topic(properties, values, "status"),
            exactly_once=values["exactly.once.source.support"].lower() == "enabled",
            fences_leaders=values["exactly.once.source.support"].lower() != "disabled",
        )


def with_defaults(properties: Mapping[str, str], group_id: str) -> dict[str, str]:
    """Return properties of a distributed worker that name at least the brokers, for `moldau connect`."""
    return {
        "group.id": group_id,
        "config.storage.topic": f"{group_id}-configs",
        "offset.storage.topic": f"{group_id}-offsets",
        "status.storage.topic": f"{group_id}-status",
        "config.storage.replication.factor": "-1",
        "offset.storage.replication.factor": "-1",
        "status.storage.replication.factor": "-1",
        "key.converter": _JSON,
        "value.converter": _JSON,
        **properties,
    }


def _shared(properties: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "properties": dict(properties),
        "shutdown_timeout_s": values["task.shutdown.graceful.timeout.ms"] / 1000,
        "overrides": OverridePolicy.from_properties(properties),
        "topic_tracking": values["topic.tracking.enable"],
        "topic_tracking_reset": values["topic.tracking.allow.reset"],
        "tasks_host": values["tasks.host"],
        "spark_master": values["spark.master"],
    }


def _group(values: Mapping[str, Any]) -> GroupSettings:
    return GroupSettings(
        group_id=values["group.id"],
        session_timeout_ms=values["session.timeout.ms"],
        heartbeat_interval_ms=values["heartbeat.interval.ms"],
        rebalance_timeout_ms=values["rebalance.timeout.ms"],
        max_delay_ms=values["scheduled.rebalance.max.delay.ms"],
        protocol=values["connect.protocol"].lower(),
        key_ttl_ms=values["inter.worker.key.ttl.ms"],
    )


def _storage_topic(properties: Mapping[str, str], values: Mapping[str, Any], kind: str) -> StorageTopic:
    prefix = f"{kind}.storage."
    own = {f"{prefix}{each}" for each in ("topic", "replication.factor", "partitions", "file.filename")}
    configs = {
        name.removeprefix(prefix): value
        for name, value in properties.items()
        if name.startswith(prefix) and name not in own
    }
    return StorageTopic(
        name=values[f"{prefix}topic"],
        partitions=values.get(f"{prefix}partitions", 1),
        replication_factor=values[f"{prefix}replication.factor"],
        configs={**configs, "cleanup.policy": "compact"},
        setting=f"{prefix}topic",
    )
