"""`connect-standalone`: run a Connect worker."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.base.json_log import configure_logging
from moldau.cli.kafka.server.command import (
    STOP_WITH_INPUT,
    add_log_format,
    stop_at_end_of_input,
)
from moldau.cli.shared.arguments import ToolParser
from moldau.cli.shared.connection import load_config
from moldau.cli.shared.tool import run_tool
from moldau.config.definition import ConfigError

if TYPE_CHECKING:
    from moldau.http.run import Service

_DEFAULT_PORT: Final = 8083


def standalone_main(argv: Sequence[str] | None = None) -> int:
    """Run `connect-standalone` and return the exit code."""
    return run_tool(_standalone_parser, _run_standalone, argv)


def _standalone_parser() -> ToolParser:
    parser = ToolParser("connect-standalone")
    parser.add_argument("file", metavar="FILE", help="Properties file of the worker.")
    parser.add_argument(
        "connectors", metavar="CONNECTOR", nargs="*", help="Properties or JSON file of a connector."
    )
    _add_common(parser)
    return parser


def _add_common(parser: ToolParser) -> None:
    parser.add_argument("--verbose", "-v", action="store_true", help="Log what the worker does.")
    add_log_format(parser)
    parser.add_argument(STOP_WITH_INPUT, action="store_true", help=argparse.SUPPRESS)


def _run_standalone(options: argparse.Namespace) -> int:
    connectors = [_connector(Path(each)) for each in options.connectors]

    def create(properties: Mapping[str, str]) -> Service:
        from moldau.pipelines.connect.service import StandaloneWorker

        return StandaloneWorker(properties, connectors)

    return _serve(load_config(options.file), create, options)


def _connector(path: Path) -> dict[str, str]:
    """Read a connector: properties, a JSON object of settings, or one with `name` and `config`."""
    try:
        value = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"Unable to read file {path}: {error.strerror}") from None
    except ValueError:
        return load_config(str(path))
    if not isinstance(value, dict):
        raise ConfigError(f"{path} is not the configuration of a connector.")
    included = value.get("config")
    config = included if isinstance(included, dict) else value
    return {**{name: str(each) for name, each in config.items()}, "name": str(value.get("name") or "")}


def _serve(
    properties: Mapping[str, str],
    create: Callable[[Mapping[str, str]], Service],
    options: argparse.Namespace,
) -> int:
    from moldau.base.clock import SystemClock
    from moldau.http.run import Hosted, run_loop, serve
    from moldau.http.settings import HttpSettings

    level = logging.INFO if options.verbose else logging.WARNING
    configure_logging(options.log_format, level, sys.stderr)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if options.stop_with_input:
        threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    settings = HttpSettings.from_properties(properties, default_port=_DEFAULT_PORT)

    def on_ready(urls: Sequence[str]) -> None:
        print(f"Connect worker is ready: {', '.join(urls)}", flush=True)

    return run_loop(serve([Hosted(create(properties), settings, on_ready)], SystemClock()))


if __name__ == "__main__":
    sys.exit(standalone_main())
