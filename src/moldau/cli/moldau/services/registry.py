"""`moldau registry` and `schema-registry-start`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau import __version__
from moldau.cli.moldau.services.service import ServiceCommand

if TYPE_CHECKING:
    from moldau.http.run import Service

DEFAULT_PORT = 8081


def _create(properties: Mapping[str, str]) -> Service:
    from moldau.registry.wiring import create_service

    return create_service(properties, __version__)


_COMMAND = ServiceCommand(
    name="registry",
    script="schema-registry-start",
    title="Schema registry",
    default_port=DEFAULT_PORT,
    bootstrap_property="kafkastore.bootstrap.servers",
    client_prefix="kafkastore.",
    create=_create,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `moldau registry` and return the exit code."""
    return _COMMAND.main(argv)


def start_main(argv: Sequence[str] | None = None) -> int:
    """Run `schema-registry-start` and return the exit code."""
    return _COMMAND.start_main(argv)


if __name__ == "__main__":
    sys.exit(main())
