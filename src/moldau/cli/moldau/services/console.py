"""`moldau console`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.cli.moldau.services.service import ServiceCommand
from moldau.cli.shared.arguments import ToolParser

if TYPE_CHECKING:
    from moldau.http.run import Service

DEFAULT_PORT = 8080


def _create(properties: Mapping[str, str]) -> Service:
    from moldau.console.service import create_service

    return create_service(properties)


_COMMAND = ServiceCommand(
    name="console",
    script="moldau console",
    title="Web console",
    default_port=DEFAULT_PORT,
    bootstrap_property="bootstrap.servers",
    client_prefix="client.",
    create=_create,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `moldau console` and return the exit code."""
    return _COMMAND.main(argv, _add_options)


def _add_options(parser: ToolParser) -> None:
    parser.add_argument(
        "--read-only",
        action="store_const",
        const="true",
        dest="read.only",
        help="Refuse all changes.",
    )
    parser.add_argument(
        "--sql",
        action="store_const",
        const="true",
        dest="sql.enabled",
        help="Run SQL over topics with Spark.",
    )
    parser.option(
        "--registry", "URL", "Schema registry, to decode and to edit schemas.", dest="schema.registry.url"
    )
    parser.option("--connect", "URL", "REST API of Connect.", dest="connect.url")
    parser.option(
        "--pipelines", "FOLDER", "State folder of the pipelines on this machine.", dest="pipelines.folder"
    )
    parser.option(
        "--lag-window", "SECONDS", "Time over which lag is judged, 120 by default.", dest="lag.window.seconds"
    )
    parser.option(
        "--alert-webhook",
        "URL",
        "Send a POST with JSON to this URL when the status of a group changes.",
        dest="alert.webhook",
    )


if __name__ == "__main__":
    sys.exit(main())
