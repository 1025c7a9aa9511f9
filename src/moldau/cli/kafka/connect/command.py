"""`connect-standalone`, `connect-distributed` and `moldau connect`: run a Connect worker."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.base.json_log import configure_logging
from moldau.cli.shared.arguments import ToolParser, require
from moldau.cli.shared.connection import COMMAND_CONFIG, load_config
from moldau.cli.shared.process import add_process_options, overrides, start_stop_watcher
from moldau.cli.shared.tool import run_tool
from moldau.config.definition import ConfigError

if TYPE_CHECKING:
    from moldau.http.run import Service

_DEFAULT_PORT: Final = 8083
_DEFAULT_GROUP: Final = "connect-cluster"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `moldau connect` and return the exit code."""
    return run_tool(_parser, _run_options, argv)


def distributed_main(argv: Sequence[str] | None = None) -> int:
    """Run `connect-distributed` and return the exit code."""
    return run_tool(_distributed_parser, _run_distributed, argv)


def standalone_main(argv: Sequence[str] | None = None) -> int:
    """Run `connect-standalone` and return the exit code."""
    return run_tool(_standalone_parser, _run_standalone, argv)


def _parser() -> ToolParser:
    parser = ToolParser("moldau connect", "Run a Connect worker.")
    parser.option("--bootstrap-server", "HOST:PORT", "REQUIRED: the broker(s) to connect to first.")
    parser.option("--port", "PORT", f"Port of the REST API, {_DEFAULT_PORT} by default.", type=int)
    parser.option("--host", "HOST", "Address to listen on, 127.0.0.1 by default.")
    parser.option("--group", "GROUP", f"Group of the workers, {_DEFAULT_GROUP} by default.")
    parser.option("--config", "FILE", "Properties file of the worker.")
    parser.option("--master", "URL", "Spark master that runs the tasks, local[256] by default.")
    parser.option("--command-config", "FILE", COMMAND_CONFIG)
    parser.option(
        "--set", "NAME=VALUE", "A setting of the worker. May be repeated.", action="append", default=[]
    )
    _add_common(parser)
    return parser


def _distributed_parser() -> ToolParser:
    parser = ToolParser("connect-distributed")
    parser.add_argument("file", metavar="FILE", help="Properties file of the worker.")
    _add_common(parser)
    return parser


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
    add_process_options(parser)


def _run_options(options: argparse.Namespace) -> int:
    from moldau.pipelines.connect.config.worker import with_defaults

    require(options, "bootstrap-server")
    given = {**load_config(options.command_config), **load_config(options.config)}
    given["bootstrap.servers"] = options.bootstrap_server
    if options.host is not None or options.port is not None:
        host = options.host or "127.0.0.1"
        port = _DEFAULT_PORT if options.port is None else options.port
        given["listeners"] = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if options.master is not None:
        given["spark.master"] = options.master
    properties = with_defaults(given | overrides(options.set), options.group or _DEFAULT_GROUP)
    return _serve(properties, _distributed, options)


def _run_distributed(options: argparse.Namespace) -> int:
    return _serve(load_config(options.file), _distributed, options)


def _run_standalone(options: argparse.Namespace) -> int:
    connectors = [_connector(Path(each)) for each in options.connectors]

    def create(properties: Mapping[str, str]) -> Service:
        from moldau.pipelines.connect.standalone import StandaloneWorker

        return StandaloneWorker(properties, connectors)

    return _serve(load_config(options.file), create, options)


def _distributed(properties: Mapping[str, str]) -> Service:
    from moldau.pipelines.connect.distributed import DistributedWorker

    return DistributedWorker(properties)


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
    from moldau.config.providers import resolved
    from moldau.http.run import Hosted, run_loop, serve
    from moldau.http.settings import HttpSettings
    from moldau.pipelines.connect.rest.internal import is_internal
    from moldau.pipelines.connect.service import listener_properties

    level = logging.INFO if options.verbose else logging.WARNING
    configure_logging(options.log_format, level, sys.stderr)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for library in ("httpx2", "httpcore2"):
        # Their lines have whole URLs, one for every request.
        logging.getLogger(library).setLevel(logging.WARNING)
    start_stop_watcher(options)
    own = listener_properties(resolved(properties, ConfigError))
    settings = HttpSettings.from_properties(own, default_port=_DEFAULT_PORT)

    def on_ready(urls: Sequence[str]) -> None:
        print(f"Connect worker is ready: {', '.join(urls)}", flush=True)

    return run_loop(serve([Hosted(create(properties), settings, on_ready, is_internal)], SystemClock()))


if __name__ == "__main__":
    sys.exit(main())
