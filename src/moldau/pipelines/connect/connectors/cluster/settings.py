"""The settings of MirrorMaker 2's connectors, and the flow they describe.

A connector names its clusters `source.cluster.` and `target.cluster.` (connections) and `source.consumer.`,
`target.producer.` and so on (clients); all other settings are those of a flow in mm2.properties.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from moldau.pipelines.connect.config.connector import source_definition
from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.mirror.config.definitions import SETTINGS, WORKER_SETTINGS, MirrorConfigError
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.config.properties import read_config

SOURCE_ALIAS, TARGET_ALIAS = "source.cluster.alias", "target.cluster.alias"
SOURCE_SERVERS, TARGET_SERVERS = "source.cluster.bootstrap.servers", "target.cluster.bootstrap.servers"
#: Settings of flows that are the worker's, or have another meaning for a connector.
_POLICY: Final = frozenset(name for name in SETTINGS if name.startswith("replication.policy."))
_OTHERS: Final = {"enabled", "tasks.max", "transaction.boundary.interval.ms", *WORKER_SETTINGS} - _POLICY
_OF_GROUPS: Final = frozenset(
    name
    for name in SETTINGS
    if name.startswith(("groups", "refresh.groups.", "emit.checkpoints.", "checkpoints.", "sync.group."))
) | {"group.filter.class"}
_OF_SYNCS: Final = frozenset(name for name in SETTINGS if "offset-syncs" in name)
_OF_HEARTBEATS: Final = frozenset(
    name for name in SETTINGS if name.startswith(("emit.heartbeats.", "heartbeats.topic."))
)
_OF_SEVERAL: Final = _POLICY | {"admin.timeout.ms"}
HEARTBEAT_SETTINGS: Final = _OF_HEARTBEATS | _OF_SEVERAL
CHECKPOINT_SETTINGS: Final = _OF_GROUPS | _OF_SYNCS | _OF_SEVERAL | {"topics", "topics.exclude"}
SOURCE_SETTINGS: Final = frozenset(SETTINGS) - _OTHERS - _OF_GROUPS - _OF_HEARTBEATS
_WORKER_PREFIXES: Final = (
    *("errors.", "topic.creation.", "producer.override.", "consumer.override.", "admin.override."),
    *("config.providers", "header.converter", "task."),
)
_CONNECT: Final = frozenset(source_definition().keys) - {"key.converter", "value.converter"}
_TRANSFORMATIONS: Final = ("transforms", "predicates")


def cluster_config(settings: Collection[str]) -> ConfigDef:
    """Return the definition of a connector with these settings of a flow; those of others are accepted."""
    definition = ConfigDef()
    text, high, low = ConfigType.STRING, Importance.HIGH, Importance.LOW
    for name, default, servers, role in (
        (SOURCE_ALIAS, "source", SOURCE_SERVERS, "source"),
        (TARGET_ALIAS, "target", TARGET_SERVERS, "target"),
    ):
        definition.define(name, text, default, high, f"Alias of the {role} cluster.")
        definition.define(servers, text, NO_DEFAULT, high, f"Addresses of the {role} cluster.")
    for setting in SETTINGS.values():
        if setting.name in settings:
            definition.define(setting.name, text, setting.default or None, low, setting.meaning)
    return definition


def flow_of(properties: Mapping[str, str]) -> Flow:
    """Return the flow of a connector; `ConfigError` names the setting that is wrong."""
    source = properties.get(SOURCE_ALIAS) or "source"
    target = properties.get(TARGET_ALIAS) or "target"
    for name in _TRANSFORMATIONS:
        if properties.get(name):
            raise ConfigError.invalid(
                name, properties[name], "records are copied as they are; use a connector of records"
            )
    described = {"clusters": f"{source}, {target}", f"{source}->{target}.enabled": "true"}
    for name, value in properties.items():
        described |= _described(name, value, source, target)
    try:
        return read_config(described).flow(f"{source}->{target}")
    except MirrorConfigError as error:
        raise ConfigError(str(error).replace(f"{source}->{target}.", "")) from error


def _described(name: str, value: str, source: str, target: str) -> dict[str, str]:
    """Return a setting as it is written in mm2.properties; nothing for one of the worker."""
    for role, alias in (("source", source), ("target", target)):
        if name.startswith(f"{role}.cluster."):
            rest = name.removeprefix(f"{role}.cluster.")
            return {} if rest == "alias" else {f"{alias}.{rest}": value}
        for client in ("consumer", "producer", "admin"):
            if name.startswith(f"{role}.{client}."):
                return {f"{alias}.{name.removeprefix(f'{role}.')}": value}
    if name in _CONNECT or name in _OTHERS or name.startswith((*_WORKER_PREFIXES, *_TRANSFORMATIONS)):
        return {}
    return {f"{source}->{target}.{name}": value}
