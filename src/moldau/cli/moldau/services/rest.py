"""`moldau rest` and `kafka-rest-start`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau import __version__
from moldau.cli.moldau.services.service import ServiceCommand
from moldau.cli.shared.arguments import ToolParser

if TYPE_CHECKING:
    from moldau.http.run import Service

DEFAULT_PORT = 8082


def _create(properties: Mapping[str, str]) -> Service:
    from moldau.rest.wiring import create_service

    return create_service(properties, __version__)


_COMMAND = ServiceCommand(
    name="rest",
    script="kafka-rest-start",
    title="REST proxy",
    default_port=DEFAULT_PORT,
    bootstrap_property="bootstrap.servers",
    client_prefix="client.",
    create=_create,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `moldau rest` and return the exit code."""
    return _COMMAND.main(argv, _add_registry)


def start_main(argv: Sequence[str] | None = None) -> int:
    """Run `kafka-rest-start` and return the exit code."""
    return _COMMAND.start_main(argv)


def _add_registry(parser: ToolParser) -> None:
    parser.option(
        "--registry",
        "URL",
        "Schema registry for the formats avro, jsonschema and protobuf.",
        dest="schema.registry.url",
    )


if __name__ == "__main__":
    sys.exit(main())
