"""kafka-client-metrics: which metrics clients push to the brokers, how often, and which clients (KIP-714)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, open_admin
from moldau.cli.shared.tool import run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.configs import ConfigEntry, ConfigResource

_ACTIONS = ("alter", "delete", "describe", "list")
_SETTINGS = ("generate-name", "interval", "match", "metrics")


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(
        _parser,
        _execute,
        argv,
        report=lambda text: print(f"Error while executing client metrics command : {text}"),
    )


def _parser() -> ToolParser:
    parser = ToolParser("kafka-client-metrics")
    add_bootstrap_options(parser)
    parser.flag("--alter", "Create or change a subscription.")
    parser.flag("--delete", "Delete a subscription.")
    parser.flag("--describe", "Print subscriptions with their configurations.")
    parser.flag("--list", "List the names of subscriptions.")
    parser.option("--name", "NAME", "The subscription.")
    parser.flag("--generate-name", "Alter: create a subscription whose name is a UUID.")
    parser.option("--interval", "MS", "Alter: the interval at which clients push, in milliseconds.", type=int)
    parser.option(
        "--match",
        "K1=V1,K2=V2",
        "Alter: the clients that push, by patterns for client_id, client_instance_id, client_software_name, "
        "client_software_version, client_source_address and client_source_port.",
    )
    parser.option("--metrics", "M1,M2", "Alter: the metrics to push, by the prefixes of their names.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    actions = [action for action in _ACTIONS if getattr(options, action)]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --alter, --delete, --describe or --list.")
    bootstrap_servers(options)
    refuse_together(options, "delete", _SETTINGS)
    refuse_together(options, "describe", _SETTINGS)
    refuse_together(options, "list", ("name", *_SETTINGS))
    if options.alter and (options.name is not None) == options.generate_name:
        raise UsageError("One of --name or --generate-name must be specified with --alter.")
    if options.delete and options.name is None:
        raise UsageError("A client metrics resource name must be specified with --delete.")
    run = {"alter": _alter, "delete": _delete, "describe": _describe, "list": _list}[actions[0]]
    with open_admin(options) as admin:
        run(admin, options)


def _alter(admin: AdminClient, options: argparse.Namespace) -> None:
    name = _generated_name() if options.generate_name else options.name
    texts = {"interval.ms": options.interval, "metrics": options.metrics, "match": options.match}
    _change(admin, name, {key: str(text) for key, text in texts.items() if text is not None})
    print(f"Altered client metrics config for {name}.")


def _delete(admin: AdminClient, options: argparse.Namespace) -> None:
    _change(admin, options.name, {entry.name: "" for entry in _entries(admin, options.name)})
    print(f"Deleted client metrics config for {options.name}.")


def _describe(admin: AdminClient, options: argparse.Namespace) -> None:
    for name in _names(admin) if options.name is None else [options.name]:
        print(f"Client metrics configs for {name} are:")
        for entry in _entries(admin, name):
            print(f"  {entry.name}={entry.value}")


def _list(admin: AdminClient, options: argparse.Namespace) -> None:
    print("\n".join(_names(admin)))


def _change(admin: AdminClient, name: str, configs: dict[str, str]) -> None:
    """Set configs; an empty text deletes one, as in Kafka's tool."""
    from moldau.client.admin.configs import AlterConfig, AlterOperation

    resource = _resource(name)
    changes = [
        AlterConfig(key, AlterOperation.SET if text else AlterOperation.DELETE, text)
        for key, text in configs.items()
    ]
    error = admin.incremental_alter_configs({resource: changes})[resource]
    if error is not None:
        raise error


def _names(admin: AdminClient) -> list[str]:
    from moldau.client.admin.configs import ResourceType

    return [each.name for each in admin.list_config_resources([ResourceType.CLIENT_METRICS])]


def _entries(admin: AdminClient, name: str) -> list[ConfigEntry]:
    from moldau.client.admin.client import checked

    resource = _resource(name)
    return checked(admin.describe_configs([resource]))[resource]


def _resource(name: str) -> ConfigResource:
    from moldau.client.admin.configs import ConfigResource, ResourceType

    return ConfigResource(ResourceType.CLIENT_METRICS, name)


def _generated_name() -> str:
    import random

    from moldau.base.ids import format_uuid, random_uuid

    return format_uuid(random_uuid(random.SystemRandom()))
