"""The entries of DescribeConfigs: every config of a resource with its value, its source and its synonyms.

Pure functions of the configs in the metadata and the node's `BrokerConfig`. The first synonym of an entry is
the value in effect, and its source is the source of the entry; a config whose own name is in no source has
DEFAULT_CONFIG and no synonyms, as in Kafka. Passwords and values of unknown names are never shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import dropwhile
from typing import NamedTuple

from moldau.config.broker.config import BrokerConfig
from moldau.config.broker.definitions import BROKER_CONFIGS, CHANGEABLE, DYNAMIC_BROKER_CONFIGS
from moldau.config.broker.synonyms import listener_synonyms_of
from moldau.config.client_metrics import CLIENT_METRICS_CONFIGS
from moldau.config.definition import (
    ConfigError,
    ConfigKey,
    ConfigSource,
    ConfigType,
    Required,
    format_value,
)
from moldau.config.group import GROUP_CONFIG_SYNONYMS, GROUP_CONFIGS
from moldau.config.topic import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntryDescription(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    type: ConfigType
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]


def describe_topic_configs(
    overrides: Mapping[str, str], config: BrokerConfig, names: Collection[str] | None = None
) -> list[ConfigEntryDescription]:
    """The configs of a topic; `overrides` are those set for the topic itself."""
    values = config.topic_values(overrides)
    described = []
    for name in _selected(TOPIC_CONFIGS, overrides, names):
        synonyms = TOPIC_CONFIG_SYNONYMS.get(name)
        inherited = () if synonyms is None else _broker_synonyms(config, synonyms[0].name)
        value = format_value(values.get(name))
        own = _own(name, value, overrides, ConfigSource.DYNAMIC_TOPIC_CONFIG)
        described.append(_entry(TOPIC_CONFIGS.get(name), name, value, own + inherited))
    return described


def describe_broker_configs(
    config: BrokerConfig, names: Collection[str] | None = None
) -> list[ConfigEntryDescription]:
    """All configs of this broker."""
    described = []
    for name in _selected(BROKER_CONFIGS, config.texts, names):
        value = format_value(config.values[name]) if name in config.values else config.texts[name]
        described.append(_broker_entry(name, value, _broker_synonyms(config, name)))
    return described


def describe_broker_defaults(
    config: BrokerConfig, names: Collection[str] | None = None
) -> list[ConfigEntryDescription]:
    """The cluster-wide dynamic defaults: only those that are set, as they were set."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    described = []
    for name in _selected({}, config.dynamic_default, names):
        synonyms = tuple(each for each in _broker_synonyms(config, name) if each.source is source)
        described.append(_broker_entry(name, config.dynamic_default[name], synonyms))
    return described


def describe_group_configs(
    overrides: Mapping[str, str], config: BrokerConfig, names: Collection[str] | None = None
) -> list[ConfigEntryDescription]:
    """The configs of a group; `overrides` are those set for the group itself."""
    described = []
    for name in _selected(GROUP_CONFIGS, overrides, names):
        key, broker_name = GROUP_CONFIGS.get(name), GROUP_CONFIG_SYNONYMS.get(name)
        if broker_name is not None:
            inherited = _broker_synonyms(config, broker_name)
            default = config.values[broker_name]
        else:
            default = None if key is None or isinstance(key.default, Required) else key.default
            inherited = _own(name, format_value(default), {name: ""}, ConfigSource.DEFAULT_CONFIG)
        value = _shown(key, overrides[name]) if name in overrides else format_value(default)
        own = _own(name, value, overrides, ConfigSource.DYNAMIC_GROUP_CONFIG)
        described.append(_entry(key, name, value, own + inherited))
    return described


def describe_client_metrics_configs(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntryDescription]:
    """The configs of a client metrics subscription."""
    described = []
    for name in _selected(CLIENT_METRICS_CONFIGS, overrides, names):
        key = CLIENT_METRICS_CONFIGS.get(name)
        default = None if key is None else key.default_text
        value = _shown(key, overrides[name]) if name in overrides else default
        own = _own(name, value, overrides, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG)
        described.append(_entry(key, name, value, own))
    return described


def _selected(
    table: Mapping[str, ConfigKey], present: Iterable[str], names: Collection[str] | None
) -> list[str]:
    """The names to describe: all that are public or set, or the requested ones among them."""
    public = {name for name, key in table.items() if not key.internal}
    return sorted(name for name in public.union(present) if not names or name in names)


def _shown(key: ConfigKey | None, text: str) -> str | None:
    """Format the parsed value; text that cannot be parsed is returned as it is."""
    try:
        return text if key is None else format_value(key.read(text))
    except ConfigError:
        return text


def _own(
    name: str, value: str | None, overrides: Mapping[str, str], source: ConfigSource
) -> tuple[ConfigSynonym, ...]:
    return (ConfigSynonym(name, value, source),) if name in overrides else ()


def _broker_synonyms(config: BrokerConfig, name: str) -> tuple[ConfigSynonym, ...]:
    """The values of broker config `name` and its synonyms, in order of precedence, from `name` itself on."""
    sources = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, config.dynamic_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, config.dynamic_default),
        (ConfigSource.STATIC_BROKER_CONFIG, config.static),
    )
    names = listener_synonyms_of(name)
    found = [
        ConfigSynonym(each, settings[each], source)
        for source, settings in sources
        for each in names
        if each in settings
    ]
    found += [
        ConfigSynonym(each, text, ConfigSource.DEFAULT_CONFIG)
        for each in names
        if each in BROKER_CONFIGS and (text := BROKER_CONFIGS[each].default_text) is not None
    ]
    return tuple(dropwhile(lambda synonym: synonym.name != name, found))


def _broker_entry(
    name: str, value: str | None, synonyms: tuple[ConfigSynonym, ...]
) -> ConfigEntryDescription:
    own = BROKER_CONFIGS.get(name) or DYNAMIC_BROKER_CONFIGS.get(name)
    key = own or next(
        (BROKER_CONFIGS[each] for each in listener_synonyms_of(name) if each in BROKER_CONFIGS), None
    )
    entry = _entry(key, name, value, synonyms)
    return entry._replace(
        read_only=name not in CHANGEABLE, documentation=None if own is None else own.documentation
    )


def _entry(
    key: ConfigKey | None, name: str, value: str | None, synonyms: tuple[ConfigSynonym, ...]
) -> ConfigEntryDescription:
    sensitive = key is None or key.sensitive
    if sensitive:
        value = None
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    return ConfigEntryDescription(
        name=name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=sensitive,
        read_only=False,
        type=ConfigType.UNKNOWN if key is None else key.type,
        documentation=None if key is None else key.documentation,
        synonyms=synonyms,
    )
