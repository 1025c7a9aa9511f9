"""kafka-configs: describe and alter configurations of topics, brokers, groups, users, clients and others."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.kafka.configs import quotas, scram
from moldau.cli.kafka.configs.entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    DEFAULT,
    GROUPS,
    IPS,
    TOPICS,
    USERS,
    Entities,
    add_entity_options,
    parse_entities,
)
from moldau.cli.shared.arguments import ToolParser, UsageError, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, admin_from, bootstrap_servers, load_config
from moldau.cli.shared.java import java_boolean
from moldau.cli.shared.tool import run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.configs import ConfigEntry, ConfigResource

#: Matches outside square brackets only: commas and equal signs within them belong to a value.
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-configs", notes=_config_names)
    add_bootstrap_options(parser, required=False)
    parser.option(
        "--bootstrap-controller", "HOST:PORT", "The controller(s) to connect to instead of brokers (KIP-919)."
    )
    parser.flag("--alter", "Alter the configuration of the entity.")
    parser.flag("--describe", "List the configurations of the entity.")
    parser.flag("--all", "Describe: also list static and default configurations.")
    add_entity_options(parser)
    parser.option(
        "--add-config",
        "K=V,...",
        "Alter: the configurations to set, as k1=v1,k2=[v1,v2]; brackets enclose a value with commas.",
    )
    parser.option("--add-config-file", "FILE", "Alter: a properties file with the configurations to set.")
    parser.option("--delete-config", "K,...", "Alter: the configurations to remove.", action="append")
    parser.hidden("--force", action="store_true")
    return parser


def _config_names() -> str:
    from moldau.config.broker.definitions import BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS
    from moldau.config.client_metrics import CLIENT_METRICS_CONFIGS
    from moldau.config.definition import UpdateMode
    from moldau.config.group import GROUP_CONFIGS
    from moldau.config.topic import TOPIC_CONFIGS

    changeable = [name for name, key in BROKER_CONFIGS.items() if key.update is not UpdateMode.READ_ONLY]
    client_quotas = sorted(quotas.CLIENT_QUOTAS)
    groups = {
        TOPICS: [name for name, key in TOPIC_CONFIGS.items() if not key.internal],
        BROKERS: sorted({*changeable, *DYNAMIC_BROKER_CONFIGS}),
        USERS: [*sorted(scram.MECHANISMS), *client_quotas],
        CLIENTS: client_quotas,
        IPS: sorted(quotas.IP_QUOTAS),
        CLIENT_METRICS: sorted(CLIENT_METRICS_CONFIGS),
        GROUPS: sorted(GROUP_CONFIGS),
    }
    return "\n".join(
        f"for --entity-type {kind}:\n" + "\n".join(f"  {name}" for name in names)
        for kind, names in groups.items()
    )


def _execute(options: argparse.Namespace) -> None:
    if options.alter == options.describe:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    refuse_together(options, "describe", ["add-config", "delete-config"])
    entities = parse_entities(options)
    with _open(options) as admin:
        if options.alter:
            _alter(admin, options, entities)
        else:
            _describe(admin, options, entities)


def _open(options: argparse.Namespace) -> AdminClient:
    servers = bootstrap_servers(options, required=False)
    if servers and options.bootstrap_controller:
        raise UsageError("Only one of --bootstrap-server or --bootstrap-controller can be specified.")
    if options.bootstrap_controller:
        return admin_from({"bootstrap.controllers": options.bootstrap_controller}, options)
    if not servers:
        raise UsageError("Either --bootstrap-server or --bootstrap-controller must be specified.")
    return admin_from({"bootstrap.servers": servers}, options)


def _alter(admin: AdminClient, options: argparse.Namespace, entities: Entities) -> None:
    add = _parse_added(options)
    delete = [name.strip() for item in options.delete_config or [] for name in item.split(",")]
    if entities.type in (USERS, CLIENTS):
        quotas.alter_user_or_client(admin, entities, add, delete)
    elif entities.type == IPS:
        quotas.alter_ip(admin, entities, add, delete)
    else:
        _alter_resource(admin, entities, add, delete)
    name = entities.names[0]
    if name == DEFAULT:
        print(f"Completed updating default config for {entities.type} in the cluster.")
    else:
        print(f"Completed updating config for {entities.type[:-1]} {name}.")


def _parse_added(options: argparse.Namespace) -> dict[str, str]:
    added = load_config(options.add_config_file)
    if options.add_config is not None:
        pairs = [
            re.split(r"\s*=\s*" + _OUTSIDE_BRACKETS, item)
            for item in re.split("," + _OUTSIDE_BRACKETS, options.add_config)
        ]
        if any(len(pair) != 2 for pair in pairs):
            raise UsageError(
                'Invalid entity config: all configs to be added must be in the format "key=val" or '
                '"key=[val1,val2]" to group values which contain commas.'
            )
        added.update({name.strip(): re.sub(r"[\[\]]", "", value).strip() for name, value in pairs})
    for name in added:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", name):
            raise UsageError(f"Invalid character found for config key: {name}")
    return added


def _alter_resource(
    admin: AdminClient, entities: Entities, add: dict[str, str], delete: Sequence[str]
) -> None:
    from moldau.client.admin.configs import AlterConfig, AlterOperation

    resource = _resource(entities.type, entities.names[0])
    if entities.type == BROKER_LOGGERS:
        known = {entry.name for entry in _entries(admin, resource)}
        unknown = [name for name in (*delete, *add) if name not in known]
        if unknown:
            raise UsageError(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [
        *(AlterConfig(name, AlterOperation.SET, value) for name, value in add.items()),
        *(AlterConfig(name, AlterOperation.DELETE, "") for name in delete),
    ]
    error = admin.incremental_alter_configs({resource: changes})[resource]
    if error is not None:
        raise error


def _describe(admin: AdminClient, options: argparse.Namespace, entities: Entities) -> None:
    if entities.type in (USERS, CLIENTS, IPS):
        quotas.describe(admin, entities)
        return
    kind, name = entities.type, entities.names[0] if entities.names else None
    if name and not options.all and name not in _known_names(admin, kind):
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    names = _known_names(admin, kind) if name is None else [name]
    if name is None and kind == BROKERS:
        names.append(DEFAULT)
    for entity in names:
        if entity == DEFAULT:
            print(f"Default configs for {kind} in the cluster are:")
        else:
            print(f"{'All' if options.all else 'Dynamic'} configs for {kind[:-1]} {entity} are:")
        _print_entries(admin, kind, entity, everything=options.all)


def _known_names(admin: AdminClient, kind: str) -> list[str]:
    """Return the entities of a type that exist or have a configuration."""
    from moldau.client.admin.configs import ResourceType

    if kind == TOPICS:
        return list(admin.list_topics())
    if kind in (BROKERS, BROKER_LOGGERS):
        return [str(node.id) for node in admin.describe_cluster().nodes]
    wanted = ResourceType.GROUP if kind == GROUPS else ResourceType.CLIENT_METRICS
    names = [resource.name for resource in admin.list_config_resources([wanted])]
    if kind == GROUPS:
        names += _live_groups(admin)
    return sorted(set(names))


def _live_groups(admin: AdminClient) -> list[str]:
    try:
        return [each.group_id for each in admin.list_groups()]
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return []
        raise


def _print_entries(admin: AdminClient, kind: str, name: str, *, everything: bool) -> None:
    from moldau.config.definition import ConfigSource

    dynamic = {
        TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
        BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG if name else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
        CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
        GROUPS: ConfigSource.DYNAMIC_GROUP_CONFIG,
    }.get(kind)
    for entry in sorted(_entries(admin, _resource(kind, name)), key=lambda entry: entry.name):
        if everything or dynamic is None or entry.source is dynamic:
            print(_line(entry))


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{s.source.name}:{s.name}={_value(s.value)}" for s in entry.synonyms)
    sensitive = java_boolean(entry.sensitive)
    return f"  {entry.name}={_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _entries(admin: AdminClient, resource: ConfigResource) -> list[ConfigEntry]:
    from moldau.client.admin.client import checked

    return checked(admin.describe_configs([resource], include_synonyms=True))[resource]


def _resource(kind: str, name: str) -> ConfigResource:
    from moldau.client.admin.configs import ConfigResource, ResourceType

    types = {
        TOPICS: ResourceType.TOPIC,
        BROKERS: ResourceType.BROKER,
        BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
        CLIENT_METRICS: ResourceType.CLIENT_METRICS,
        GROUPS: ResourceType.GROUP,
    }
    return ConfigResource(types[kind], name)
