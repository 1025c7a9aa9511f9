"""The options with which a tool connects to a cluster, and the admin client that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.tool import ToolError, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

DEFAULT_BOOTSTRAP = "localhost:9092"
COMMAND_CONFIG = "Properties file with client settings."


def add_bootstrap_options(
    parser: ToolParser, *, required: bool = True, old_broker_list: bool = True, config: bool = True
) -> None:
    """Add --bootstrap-server, --command-config, and the options that older Kafka releases had instead."""
    word = "REQUIRED: the" if required else "The"
    parser.option(
        "--bootstrap-server",
        "HOST:PORT",
        f"{word} broker(s) to connect to first, as HOST1:PORT1,HOST2:PORT2.",
    )
    if config:
        parser.option("--command-config", "FILE", COMMAND_CONFIG)
    if old_broker_list:
        parser.hidden("--broker-list", dest="old_broker_list")
    parser.hidden("--zookeeper")


def bootstrap_servers(options: argparse.Namespace, *, required: bool = True) -> str | None:
    """Return the bootstrap servers, also if an option of an older Kafka release names them."""
    zookeeper = getattr(options, "zookeeper", None)
    if zookeeper is not None:
        warn("Warning: --zookeeper is ignored: Kafka no longer uses ZooKeeper.")
    server = options.bootstrap_server or getattr(options, "old_broker_list", None)
    if server:
        return str(server)
    if zookeeper is not None:
        warn(f"Connecting to {DEFAULT_BOOTSTRAP}; use --bootstrap-server for another broker.")
        return DEFAULT_BOOTSTRAP
    if required:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    return None


def add_either_bootstrap(parser: ToolParser) -> None:
    """Add --bootstrap-server, --bootstrap-controller and --command-config."""
    parser.option("--bootstrap-server", "HOST:PORT", "The broker(s) to connect to first.")
    parser.option(
        "--bootstrap-controller", "HOST:PORT", "The controller(s) to connect to instead of brokers (KIP-919)."
    )
    parser.option("--command-config", "FILE", COMMAND_CONFIG)


def load_config(path: str | None) -> dict[str, str]:
    """Load the properties file named on the command line; return no properties if there is none."""
    from moldau.config.properties import PropertiesError, load_properties

    if path is None:
        return {}
    try:
        return load_properties(path)
    except OSError as error:
        raise ToolError(f"Unable to read file {path}: {error.strerror}") from error
    except PropertiesError as error:
        raise ToolError(f"{path}, {error}") from error


def load_client_config(path: str | None) -> dict[str, str]:
    """Load the properties file of a client, with the values of its config providers."""
    from moldau.config.providers import resolved

    return resolved(load_config(path), ToolError, strict=True)


def open_admin(
    options: argparse.Namespace, *, client_id: str = "moldau-admin", config: str | None = None
) -> AdminClient:
    """Open the admin client that the options of `add_bootstrap_options` describe."""
    return admin_from({"bootstrap.servers": bootstrap_servers(options) or ""}, options, client_id, config)


def open_admin_of_either(options: argparse.Namespace, *, client_id: str = "moldau-admin") -> AdminClient:
    """Open the admin client that the options of `add_either_bootstrap` describe; one is given."""
    if options.bootstrap_controller:
        return admin_from({"bootstrap.controllers": options.bootstrap_controller}, options, client_id)
    return admin_from({"bootstrap.servers": options.bootstrap_server}, options, client_id)


def admin_from(
    addresses: Mapping[str, str],
    options: argparse.Namespace,
    client_id: str = "moldau-admin",
    config: str | None = None,
    defaults: Mapping[str, str] | None = None,
) -> AdminClient:
    """Open an admin client for these addresses; other settings are those of the config file or `defaults`."""
    from moldau.client.admin.client import AdminClient
    from moldau.client.wire.settings import ClientSettings

    properties = load_client_config(config or getattr(options, "command_config", None))
    properties.pop("bootstrap.servers", None)
    properties.pop("bootstrap.controllers", None)
    return AdminClient(
        ClientSettings.from_properties(
            {"client.id": client_id, **(defaults or {}), **properties, **addresses}
        )
    )
