"""The common part of the commands of all HTTP services: options, properties, running until a signal."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau.base.json_log import configure_logging
from moldau.cli.shared.arguments import ToolParser, require
from moldau.cli.shared.connection import COMMAND_CONFIG, load_client_config
from moldau.cli.shared.process import add_process_options, overrides, start_stop_watcher
from moldau.cli.shared.tool import run_tool
from moldau.cli.tools import COMMANDS

if TYPE_CHECKING:
    from moldau.http.run import Service

#: Parts of the names of settings with secrets.
_SECRET: Final = ("password", "secret", "jaas.config", "keystore.key", "authentication.user.")


class ServiceCommand(NamedTuple):
    """A service: its command, its start script, and how its options become Confluent's properties."""

    name: str
    script: str
    title: str
    default_port: int
    #: The property with the brokers, and the prefix of properties of Kafka clients.
    bootstrap_property: str
    client_prefix: str
    create: Callable[[Mapping[str, str]], Service]

    def main(
        self, argv: Sequence[str] | None, more: Callable[[ToolParser], None] = lambda parser: None
    ) -> int:
        """Run `moldau NAME` and return the exit code; `more` adds options, named by the property they set."""

        def parser() -> ToolParser:
            built = self._parser()
            more(built)
            return built

        return run_tool(parser, self._run_options, argv)

    def start_main(self, argv: Sequence[str] | None) -> int:
        """Run the start script and return the exit code."""
        return run_tool(self._script_parser, self._run_file, argv)

    def _parser(self) -> ToolParser:
        parser = ToolParser(f"moldau {self.name}", COMMANDS[self.name].summary)
        parser.option("--bootstrap-server", "HOST:PORT", "REQUIRED: the broker(s) to connect to first.")
        parser.option("--port", "PORT", f"Port to listen on, {self.default_port} by default.", type=int)
        parser.option("--host", "HOST", "Address to listen on, 127.0.0.1 by default.")
        parser.option(
            "--set",
            "NAME=VALUE",
            "A setting by Confluent's name. May be repeated.",
            action="append",
            default=[],
        )
        parser.option("--command-config", "FILE", COMMAND_CONFIG)
        parser.option(
            "--config", "FILE", "Properties file with settings of the service; options replace them."
        )
        self._add_common(parser)
        return parser

    def _script_parser(self) -> ToolParser:
        parser = ToolParser(self.script)
        parser.add_argument("file", metavar="FILE", help="Properties file of the service.")
        parser.option(
            "--override",
            "property=value",
            "A setting that replaces the one in the file. May be repeated.",
            action="append",
            default=[],
        )
        self._add_common(parser)
        return parser

    @staticmethod
    def _add_common(parser: ToolParser) -> None:
        parser.add_argument("--verbose", "-v", action="store_true", help="Log what the service does.")
        add_process_options(parser)

    def _run_options(self, options: argparse.Namespace) -> int:
        properties = load_client_config(options.config)
        client = load_client_config(options.command_config)
        if self.bootstrap_property not in properties:
            require(options, "bootstrap-server")
        if options.bootstrap_server is not None:
            client["bootstrap.servers"] = properties[self.bootstrap_property] = options.bootstrap_server
        properties |= {f"{self.client_prefix}{name}": value for name, value in client.items()}
        if options.host is not None or options.port is not None:
            host = options.host or "127.0.0.1"
            port = self.default_port if options.port is None else options.port
            properties["listeners"] = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        properties |= {name: str(value) for name, value in vars(options).items() if "." in name and value}
        given = overrides(options.set)
        self._warn_about_secrets(given)
        return self._run(properties | given, options)

    def _warn_about_secrets(self, given: Mapping[str, str]) -> None:
        """Warn about secrets in arguments: every user of the machine sees them in the list of processes."""
        for name, value in given.items():
            named = name.endswith(".file") or value.startswith("${")
            if any(part in name for part in _SECRET) and not named:
                print(
                    f"Warning: other users of this machine can read {name} in the list of processes; write "
                    f"it to a file: moldau {self.name} --config FILE.",
                    file=sys.stderr,
                )

    def _run_file(self, options: argparse.Namespace) -> int:
        return self._run(load_client_config(options.file) | overrides(options.override), options)

    def _run(self, properties: Mapping[str, str], options: argparse.Namespace) -> int:
        from moldau.base.clock import SystemClock
        from moldau.http.run import Hosted, run_loop, serve
        from moldau.http.settings import HttpSettings

        configure_logging(
            options.log_format, logging.INFO if options.verbose else logging.WARNING, sys.stderr
        )
        start_stop_watcher(options)
        settings = HttpSettings.from_properties(properties, default_port=self.default_port)

        def on_ready(urls: Sequence[str]) -> None:
            print(f"{self.title} is ready: {', '.join(urls)}", flush=True)

        return run_loop(serve([Hosted(self.create(properties), settings, on_ready)], SystemClock()))
