"""What all tools share: reading the command line, connecting, and ending in a way that helps.

A tool is a parser and a function. It ends with a number: 0, or 1 with a sentence about what went wrong and
what to do about it; never with a traceback. Ctrl-C and a closed pipe end it quietly.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

INTERRUPTED = 130
DEFAULT_BOOTSTRAP = "localhost:9092"


class ToolError(Exception):
    """Something the tool cannot do; the sentence is for the person at the terminal."""


def run_tool(
    parser: Callable[[], ToolParser],
    execute: Callable[[argparse.Namespace], int | None],
    argv: Sequence[str] | None,
    *,
    report: Callable[[str], None] | None = None,
) -> int:
    """Run a tool and return its exit code. `report` prints the sentence of a failure, normally to stderr."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(parser(), execute, arguments, report or _complain)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0


def _run(
    parser: ToolParser,
    execute: Callable[[argparse.Namespace], int | None],
    arguments: Sequence[str],
    report: Callable[[str], None],
) -> int:
    if not arguments:
        sys.stderr.write(parser.format_help())
        return 1
    try:
        code = execute(parser.parse(arguments)) or 0
        sys.stdout.flush()
        return code
    except UsageError as error:
        _complain(f"{error}\nTry '{parser.prog} --help'.")
    except SystemExit as done:
        return int(done.code or 0)
    except ToolError as error:
        report(str(error))
    except KafkaError as error:
        report(explain(error))
    return 1


def explain(error: KafkaError) -> str:
    """The sentence of an error, and what to do where we know it."""
    from moldau.client.wire.cluster import BootstrapFailed
    from moldau.network.failures import NodeUnreachable, NotKafka

    text = str(error)
    if isinstance(error, BootstrapFailed):
        address = error.failures[0][0]
        hint = "Is a broker running there?" if error.passing else "Is the address right?"
        return f"{text}\n{hint} `moldau doctor --bootstrap-server {address}` looks for the reason."
    if isinstance(error, NodeUnreachable):
        return (
            f"{text}\nThe cluster was reached, but it sends its clients to that address "
            "(advertised.listeners): `moldau doctor` says more."
        )
    if isinstance(error, NotKafka):
        return f"{text}\n`moldau doctor --bootstrap-server {error.host}:{error.port}` says more."
    if error.code is ErrorCode.UNSUPPORTED_VERSION:
        return f"{text}\nThe broker does not offer this; `kafka-broker-api-versions` shows what it does."
    return text


def warn(sentence: str) -> None:
    """Say something beside the output."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def _complain(sentence: str) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    warn(sentence)


def _drop_output() -> None:
    """Nobody reads any more: let the interpreter flush into nothing when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def add_bootstrap_options(
    parser: ToolParser, *, required: bool = True, old_broker_list: bool = True, config: bool = True
) -> None:
    """--bootstrap-server and --command-config; and what old tutorials pass instead of the first."""
    word = "REQUIRED: the" if required else "The"
    parser.option(
        "--bootstrap-server",
        "HOST:PORT",
        f"{word} broker(s) to connect to first, as HOST1:PORT1,HOST2:PORT2.",
    )
    if config:
        parser.option("--command-config", "FILE", "Properties file with settings of the client.")
    if old_broker_list:
        parser.hidden("--broker-list", dest="old_broker_list")
    parser.hidden("--zookeeper")


def bootstrap_servers(options: argparse.Namespace, *, required: bool = True) -> str | None:
    """The address to start from, also where an old option names it."""
    zookeeper = getattr(options, "zookeeper", None)
    if zookeeper is not None:
        warn("Warning: --zookeeper is no longer needed and is ignored: there is no ZooKeeper any more.")
    server = options.bootstrap_server or getattr(options, "old_broker_list", None)
    if server:
        return str(server)
    if zookeeper is not None:
        warn(f"Connecting to {DEFAULT_BOOTSTRAP}; use --bootstrap-server for another broker.")
        return DEFAULT_BOOTSTRAP
    if required:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    return None


def load_config(path: str | None) -> dict[str, str]:
    """The properties of a file named on the command line; none when there is no file."""
    from moldau.config.properties import PropertiesError, load_properties

    if path is None:
        return {}
    try:
        return load_properties(path)
    except OSError as error:
        raise ToolError(f"Unable to read file {path}: {error.strerror}") from error
    except PropertiesError as error:
        raise ToolError(f"{path}, {error}") from error


def open_admin(
    options: argparse.Namespace, *, client_id: str = "moldau-admin", config: str | None = None
) -> AdminClient:
    """The admin client that the options of `add_bootstrap_options` describe."""
    return admin_from({"bootstrap.servers": bootstrap_servers(options) or ""}, options, client_id, config)


def add_either_bootstrap(parser: ToolParser) -> None:
    """--bootstrap-server or --bootstrap-controller, and --command-config."""
    parser.option("--bootstrap-server", "HOST:PORT", "The broker(s) to connect to first.")
    parser.option("--bootstrap-controller", "HOST:PORT", "The controller(s) to connect to, without brokers.")
    parser.option("--command-config", "FILE", "Properties file with settings of the client.")


def open_admin_of_either(options: argparse.Namespace, *, client_id: str = "moldau-admin") -> AdminClient:
    """The admin client that the options of `add_either_bootstrap` describe; one of them is there."""
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
    """An admin client for these addresses, with the other settings from the config file or `defaults`."""
    from moldau.client.admin.client import AdminClient
    from moldau.client.wire.settings import ClientSettings

    properties = load_config(config or getattr(options, "command_config", None))
    properties.pop("bootstrap.servers", None)
    properties.pop("bootstrap.controllers", None)
    return AdminClient(
        ClientSettings.from_properties(
            {"client.id": client_id, **(defaults or {}), **properties, **addresses}
        )
    )
