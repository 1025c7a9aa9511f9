"""Kafka features that Moldau does not support yet: refused if ignoring them is unsafe, else a warning.

A config for protection (encryption, authentication, authorization, a policy) or for remote storage must not
be ignored silently. Java classes that only observe are ignored with a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.config.broker.definitions import BROKER_CONFIGS
from moldau.config.broker.synonyms import without_listener
from moldau.config.definition import ConfigError, format_value

if TYPE_CHECKING:
    from moldau.config.broker.config import BrokerConfig

_PRINCIPALS = "principal.builder.class"
_POLICIES = {
    "create.topic.policy.class.name": "do without the policy",
    "alter.config.policy.class.name": "do without the policy",
    "client.quota.callback.class": "use the quotas set with kafka-configs",
}
_ASSIGNORS = {"group.consumer.assignors": ("uniform", "range"), "group.share.assignors": ("simple",)}
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
#: Classes of Kafka that Moldau implements.
_BUILT_IN = (RACK_AWARE_SELECTOR, LEADER_SELECTOR)
_OBSERVERS = (
    "metric.reporters",
    "kafka.metrics.reporters",
    "replica.selector.class",
    "security.providers",
)


def check_supported(config: BrokerConfig) -> None:
    """Raise `ConfigError` for a config that must not be ignored."""
    _check_plugins(config)


def _check_plugins(config: BrokerConfig) -> None:
    _check_tiered_storage(config)
    for name, instead in _POLICIES.items():
        if config[name]:
            raise ConfigError(
                f"{name}={config[name]} names a Java class, which Moldau cannot run; remove the setting to "
                f"{instead}."
            )
    _check_principals(config)
    _check_assignors(config)


def _check_tiered_storage(config: BrokerConfig) -> None:
    if not config["remote.log.storage.system.enable"]:
        return
    if "broker" in config.process_roles and not config["remote.log.storage.manager.class.name"]:
        raise ConfigError(
            "remote.log.storage.system.enable=true needs remote.log.storage.manager.class.name: "
            "moldau.tiered.stores.objects.ObjectStore, moldau.tiered.stores.folder.FolderStore or a class "
            "of your own."
        )
    name = config["remote.log.metadata.manager.class.name"]
    if name != BROKER_CONFIGS["remote.log.metadata.manager.class.name"].default:
        raise ConfigError(
            f"remote.log.metadata.manager.class.name={name} names a class that Moldau cannot run; remove the "
            "setting to keep the metadata in the topic __remote_log_metadata."
        )


def _check_principals(config: BrokerConfig) -> None:
    """Refuse other principals than Kafka's: ACLs would apply to other users."""
    for name, text in config.static.items():
        check_principal_builder(name, text)


def check_principal_builder(name: str, text: str) -> None:
    """Raise `ConfigError` if a config is a principal builder other than Kafka's."""
    if (without_listener(name) or name) == _PRINCIPALS and text != BROKER_CONFIGS[_PRINCIPALS].default:
        raise ConfigError(
            f"{name}={text} names a Java class, which Moldau cannot run; remove the setting to use the "
            "names of users as they log in, or use ssl.principal.mapping.rules and "
            "sasl.kerberos.principal.to.local.rules."
        )


def _check_assignors(config: BrokerConfig) -> None:
    for name, known in _ASSIGNORS.items():
        for assignor in config.entries(name):
            if _short_name(assignor) not in known:
                raise ConfigError(f"{name} has {assignor}; Moldau has only {' and '.join(known)}.")


def _short_name(assignor: str) -> str:
    """Map the class names of Kafka's own assignors to their names."""
    package, _, name = assignor.rpartition(".")
    if package.startswith("org.apache.kafka.coordinator.group.assignor"):
        return name.removesuffix("Assignor").lower()
    return assignor


def doubts(config: BrokerConfig) -> tuple[str, ...]:
    """Warnings about configs that are valid but have no effect."""
    heartbeat, session = config["broker.heartbeat.interval.ms"], config["broker.session.timeout.ms"]
    if heartbeat * 2 <= session:
        return _ignored_plugins(config)
    return (
        f"broker.heartbeat.interval.ms={heartbeat} should be at most half of "
        f"broker.session.timeout.ms={session}; one late heartbeat is enough to fence the broker.",
        *_ignored_plugins(config),
    )


def _ignored_plugins(config: BrokerConfig) -> tuple[str, ...]:
    changed = [
        name
        for name in _OBSERVERS
        if config[name] not in (None, "", BROKER_CONFIGS[name].default, *_BUILT_IN)
    ]
    return tuple(
        f"{name}={format_value(config[name])} names Java classes, which Moldau does not load; it is ignored."
        for name in changed
    )
