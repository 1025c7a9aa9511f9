"""The configs of one node from all their sources, as text and as typed values.

There are three sources, in ascending precedence: the properties file, the dynamic configs of the whole
cluster, and those of this broker. A name in one source takes precedence over the same name and its synonyms
in lower sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from moldau.config.broker.definitions import BROKER_CONFIGS
from moldau.config.broker.synonyms import synonyms_of
from moldau.config.definition import ConfigError, ConfigValue, Required, format_value
from moldau.config.topic import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS


class BrokerSettings:
    """Immutable; the constructor refuses values that cannot be parsed."""

    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> None:
        #: The properties file; `node.id` and `broker.id` are the default of each other.
        self.static = _with_node_id(static)
        #: The dynamic configs of the whole cluster, and of this broker.
        self.dynamic_default = dict(dynamic_default or {})
        self.dynamic_broker = dict(dynamic_broker or {})
        #: The text in effect of every name that is set in any source.
        self.texts = _overlay(
            self.static, self._provided(self.dynamic_default), self._provided(self.dynamic_broker)
        )
        #: The typed value in effect of every known name.
        self.values = _parse(self.texts)

    def _provided(self, dynamic: Mapping[str, str]) -> Mapping[str, str]:
        """Return dynamic configs with the values of the config providers in the properties file."""
        if "config.providers" not in self.static or not dynamic:
            return dynamic
        from moldau.config.providers import ConfigProviders

        return ConfigProviders(self.static, ConfigError, strict=True).resolve(dynamic)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def integer(self, name: str) -> int:
        value: int = self[name]
        return value

    def boolean(self, name: str) -> bool:
        value: bool = self[name]
        return value

    def text(self, name: str) -> str | None:
        value: str | None = self[name]
        return value

    def entries(self, name: str) -> tuple[str, ...]:
        """The entries of a list; empty if it is not set."""
        value: tuple[str, ...] | None = self[name]
        return value or ()

    def for_listener(self, listener: str, name: str) -> Any:
        """The value of a config for one listener: its own, or the common one."""
        text = self.texts.get(f"listener.name.{listener.lower()}.{name}")
        return self[name] if text is None else BROKER_CONFIGS[name].parse(text)

    @cached_property
    def topic_default_values(self) -> dict[str, ConfigValue]:
        """The defaults of topic configs."""
        values = {name: _default_of(name) for name in TOPIC_CONFIGS}
        for name, synonyms in TOPIC_CONFIG_SYNONYMS.items():
            for synonym in synonyms:
                value = self.values[synonym.name]
                if value is not None:
                    values[name] = value * synonym.milliseconds if synonym.milliseconds > 1 else value
                    break
        if isinstance(retention_ms := values["retention.ms"], int):
            values["retention.ms"] = max(retention_ms, -1)
        return values

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
        """The typed values of all topic configs; text that cannot be parsed counts as not set.

        Values are not validated here: an older release may have allowed them.
        """
        values = dict(self.topic_default_values)
        for name, text in overrides.items():
            if name in TOPIC_CONFIGS:
                try:
                    values[name] = TOPIC_CONFIGS[name].read(text)
                except ConfigError:
                    continue
        return values

    def topic_defaults(self) -> dict[str, str]:
        """The topic configs as text, without those that have no value."""
        texts = {name: format_value(value) for name, value in self.topic_default_values.items()}
        return {name: text for name, text in texts.items() if text is not None}


def _default_of(topic_config: str) -> ConfigValue:
    default = TOPIC_CONFIGS[topic_config].default
    return None if isinstance(default, Required) else default


def _with_node_id(properties: Mapping[str, str]) -> dict[str, str]:
    copy = dict(properties)
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name in copy:
            copy.setdefault(other, copy[name])
    return copy


def _overlay(*sources: Mapping[str, str]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for source in sources:
        for name in source if merged else ():
            for synonym in synonyms_of(name):
                merged.pop(synonym, None)
        merged.update(source)
    return merged


def _parse(texts: Mapping[str, str]) -> dict[str, ConfigValue]:
    values: dict[str, ConfigValue] = {}
    for name, key in BROKER_CONFIGS.items():
        if name in texts:
            values[name] = key.parse(texts[name])
        elif isinstance(key.default, Required):
            hint = _hint_missing(name, texts)
            raise ConfigError(f'Missing required configuration "{name}" which has no default value.{hint}')
        else:
            values[name] = key.default
    return values


def _hint_missing(name: str, texts: Mapping[str, str]) -> str:
    if name in ("process.roles", "controller.listener.names") and "zookeeper.connect" in texts:
        return (
            " The file is for a cluster with ZooKeeper, which Kafka 4 no longer has; set process.roles="
            "broker,controller, node.id, controller.listener.names and controller.quorum.bootstrap.servers."
        )
    return ""
