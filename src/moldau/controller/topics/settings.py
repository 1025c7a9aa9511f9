"""The effective configs of a new topic and the sources of their values (KIP-525)."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigKey, ConfigSource
from moldau.config.topic import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS
from moldau.protocol.messages.create_topics import CreatableTopicConfigs


def effective_topic_configs(
    config: BrokerConfig, overrides: Mapping[str, str]
) -> list[CreatableTopicConfigs]:
    """Return all public configs and all given ones."""
    entries = []
    for name, key in TOPIC_CONFIGS.items():
        if key.internal and name not in overrides:
            continue
        value, source = _resolve(config, key, overrides)
        entries.append(
            CreatableTopicConfigs(
                name=name,
                value=None if key.sensitive else value,
                config_source=source,
                is_sensitive=key.sensitive,
            )
        )
    return entries


def _resolve(
    config: BrokerConfig, key: ConfigKey, overrides: Mapping[str, str]
) -> tuple[str | None, ConfigSource]:
    if key.name in overrides:
        return overrides[key.name], ConfigSource.DYNAMIC_TOPIC_CONFIG
    sources = (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (config.static, ConfigSource.STATIC_BROKER_CONFIG),
    )
    for settings, source in sources:
        for synonym in TOPIC_CONFIG_SYNONYMS.get(key.name, ()):
            text = settings.get(synonym.name)
            if text is not None:
                return _converted(text, synonym.milliseconds), source
    return key.default_text, ConfigSource.DEFAULT_CONFIG


def _converted(text: str, milliseconds: int) -> str:
    """Convert hours and minutes to the milliseconds of the topic config."""
    return text if milliseconds == 1 else str(int(text) * milliseconds)
