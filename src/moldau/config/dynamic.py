"""Dynamic config changes in a running cluster: which configs may change, and to which values.

The result of a change is validated: the caller passes all configs of the resource as they would be
afterwards. Broker configs are also validated together with the static ones and against the current values,
because a thread pool may at most double. Invalid configs in the metadata (written by another release) do not
stop a node: `apply_dynamic_configs` ignores them with a warning, and they do not stop a change of others.

Of a listener only its stores and limits can change: the others take effect when a listener opens. Apache
Kafka accepts and ignores them, so an administrator would believe that a password or a mechanism is revoked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.config import BrokerConfig
from moldau.config.broker.definitions import (
    BROKER_CONFIGS,
    CHANGEABLE,
    DYNAMIC_BROKER_CONFIGS,
    PER_BROKER_ONLY,
)
from moldau.config.broker.support import check_principal_builder
from moldau.config.broker.synonyms import without_listener
from moldau.config.definition import LIST, ConfigError, ConfigKey, ConfigValue, invalid_value
from moldau.config.tiered import check_tiered_topic
from moldau.config.topic import SCHEMA_VALIDATION, TOPIC_CONFIGS

SET, DELETE, APPEND, SUBTRACT = range(4)

#: Key stores and trust stores can be changed only per listener.
_ONLY_PER_LISTENER = frozenset(
    name
    for name in BROKER_CONFIGS
    if name.startswith(("ssl.keystore.", "ssl.truststore.")) or name == "ssl.key.password"
)
#: Per-listener configs that may be changed for the whole cluster.
_CLUSTER_WIDE_PER_LISTENER = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_CHANGEABLE_OF_LISTENER = _ONLY_PER_LISTENER.union(_CLUSTER_WIDE_PER_LISTENER)
_THREAD_POOLS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


class Operation(NamedTuple):
    """One entry of IncrementalAlterConfigs; `kind` is SET, DELETE, APPEND or SUBTRACT."""

    name: str
    kind: int
    value: str | None


def broker_configs_after(existing: Mapping[str, str], operations: Iterable[Operation]) -> dict[str, str]:
    """Apply incremental changes to the dynamic configs of a broker."""
    changed = dict(existing)
    for operation in operations:
        if operation.kind == DELETE:
            changed.pop(operation.name, None)
        elif operation.kind == SET:
            changed[operation.name] = operation.value or ""
        else:
            changed[operation.name] = _combined(changed.get(operation.name), operation)
    return changed


def _combined(current: str | None, operation: Operation) -> str:
    word = "append" if operation.kind == APPEND else "subtract"
    key = _key_of(operation.name)
    if key is None:
        raise ConfigError(f"Unknown config name: {operation.name}")
    if key.type is not LIST:
        raise ConfigError(f"Config value {word} is not allowed for config key: {operation.name}")
    text = current if current is not None else key.default_text
    entries = text.split(",") if text else []
    given = (operation.value or "").split(",")
    if operation.kind == APPEND:
        entries += [entry for entry in dict.fromkeys(given) if entry not in entries]
    else:
        entries = [entry for entry in entries if entry not in given]
    return ",".join(entries)


def validate_topic_configs(
    configs: Mapping[str, str], config: BrokerConfig, existing: Mapping[str, str] | None = None
) -> None:
    """Validate all overrides of a topic, alone, together, and against the `existing` ones."""
    for name in configs:
        if name not in TOPIC_CONFIGS:
            raise ConfigError(f"Unknown topic config name: {name}")
    values = dict(config.topic_default_values)
    for name, text in configs.items():
        values[name] = TOPIC_CONFIGS[name].parse(text)
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if _number(shortest) > _number(longest):
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    check_tiered_topic(
        values, existing or {}, system_enabled=config.boolean("remote.log.storage.system.enable")
    )
    for name in SCHEMA_VALIDATION:
        if values[name] and not config["confluent.schema.registry.url"]:
            raise invalid_value(
                name,
                "true",
                "Schema validation needs a schema registry; set confluent.schema.registry.url on all nodes",
            )


def validate_broker_configs(
    config: BrokerConfig,
    changed: Mapping[str, str],
    *,
    per_broker: bool,
    stored: Collection[str] = (),
) -> None:
    """Validate dynamic configs of this broker or of the whole cluster; `stored` are those that do not change.

    Raises `KafkaError(INVALID_REQUEST)`, as Kafka does for brokers.
    """
    try:
        given = {name: text for name, text in changed.items() if name not in stored}
        _check_names(given, per_broker=per_broker)
        kept = {name: changed[name] for name in stored if name in changed}
        changed = _usable(kept, [], per_broker=per_broker) | given
        if per_broker:
            future = config.with_dynamic(config.dynamic_default, changed)
        else:
            future = config.with_dynamic(changed, config.dynamic_broker)
        _check_transition(config, future)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.sentence) from error


def _check_names(changed: Mapping[str, str], *, per_broker: bool) -> None:
    _refuse("Cannot update these configs dynamically", filter(_is_static, changed))
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        filter(_ONLY_PER_LISTENER.__contains__, changed),
    )
    for name, text in changed.items():
        key = _key_of(without_listener(name) or name)
        if key is not None and key.name in CHANGEABLE:
            key.parse(text)
            check_principal_builder(name, text)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            filter(_is_per_broker, changed),
        )
    _refuse(
        "Configs cannot be updated dynamically for existing listener, change the file and restart the broker",
        filter(_is_fixed_of_listener, changed),
    )


def _refuse(sentence: str, names: Iterable[str]) -> None:
    listed = ", ".join(sorted(names))
    if listed:
        raise ConfigError(f"{sentence}: [{listed}]")


def _is_static(name: str) -> bool:
    return name in BROKER_CONFIGS and name not in CHANGEABLE


def _is_fixed_of_listener(name: str) -> bool:
    base = without_listener(name)
    return base is not None and base not in _CHANGEABLE_OF_LISTENER


def _is_per_broker(name: str) -> bool:
    base = without_listener(name)
    return name in PER_BROKER_ONLY if base is None else base not in _CLUSTER_WIDE_PER_LISTENER


def _key_of(name: str) -> ConfigKey | None:
    return BROKER_CONFIGS.get(name) or DYNAMIC_BROKER_CONFIGS.get(name)


def _check_transition(current: BrokerConfig, future: BrokerConfig) -> None:
    for name in _THREAD_POOLS:
        _check_threads(name, current[name], future[name])
    _check_cleaner_threads(current["log.cleaner.threads"], future["log.cleaner.threads"])
    _check_local_retention(future)
    if future.listeners != current.listeners:
        raise ConfigError(
            f"listeners={','.join(future.entries('listeners'))} differs from what the broker listens on; "
            "listeners cannot be changed while it runs; change the file and restart the broker."
        )
    reporters = set(future.entries("metric.reporters")) - set(current.entries("metric.reporters"))
    if reporters:
        raise ConfigError(f"metric.reporters has {', '.join(sorted(reporters))}, which Moldau does not load.")


def _check_threads(name: str, current: int, future: int) -> None:
    failed = f"Dynamic thread count update validation failed for {name}={future}"
    if future < current // 2:
        raise ConfigError(f"{failed}, value should be at least half the current value {current}")
    if future > current * 2:
        raise ConfigError(f"{failed}, value should not be greater than double the current value {current}")


def _check_cleaner_threads(current: int, future: int) -> None:
    if future < current // 2:
        raise ConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    if future > current * 2:
        raise ConfigError(
            f"Log cleaner threads cannot be increased to more than double the current value {current}"
        )


def _check_local_retention(future: BrokerConfig) -> None:
    topics = future.topic_default_values
    for unit in ("ms", "bytes"):
        whole, local = topics[f"retention.{unit}"], topics[f"local.retention.{unit}"]
        if whole == -1 or local == -2:
            continue
        if local == -1:
            reason = f"Value must not be -1 as log.retention.{unit} value is set as {whole}."
            raise invalid_value(f"log.local.retention.{unit}", local, reason)
        if _number(local) > _number(whole):
            reason = f"Value must not be more than log.retention.{unit} property value: {whole}"
            raise invalid_value(f"log.local.retention.{unit}", local, reason)


def _number(value: ConfigValue) -> float:
    return value if isinstance(value, int | float) else 0


class Applied(NamedTuple):
    """A configuration with dynamic configs applied, and warnings about those ignored."""

    config: BrokerConfig
    problems: tuple[str, ...]


def apply_dynamic_configs(
    config: BrokerConfig, default: Mapping[str, str], broker: Mapping[str, str]
) -> Applied:
    """Apply the valid dynamic configs from the metadata."""
    problems: list[str] = []
    usable_default = _usable(default, problems, per_broker=False)
    usable_broker = _usable(broker, problems, per_broker=True)
    try:
        return Applied(config.with_dynamic(usable_default, usable_broker), tuple(problems))
    except ConfigError as error:
        problems.append(f"The dynamic configs contradict each other and are not applied: {error.sentence}")
        return Applied(config, tuple(problems))


def _usable(settings: Mapping[str, str], problems: list[str], *, per_broker: bool) -> dict[str, str]:
    usable = {}
    for name, text in settings.items():
        try:
            _check_names({name: text}, per_broker=per_broker)
            usable[name] = text
        except ConfigError as error:
            problems.append(f"The dynamic config {name} is ignored: {error.sentence}")
    return usable
