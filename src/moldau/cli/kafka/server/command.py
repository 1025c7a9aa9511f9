"""`kafka-server-start` and `kafka-server-stop`: start and stop nodes on this machine."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from moldau.base.json_log import configure_logging
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.connection import load_config
from moldau.cli.shared.process import add_process_options, overrides, start_stop_watcher
from moldau.cli.shared.tool import ToolError, run_tool, warn

Ready = Callable[[dict[str, int]], None]

#: A node that may depend on others is not awaited longer than this: the next command may start them.
_READY_TIMEOUT_WITH_OTHERS_S = 3.0


def start_main(argv: Sequence[str] | None = None) -> int:
    """Run `kafka-server-start` and return the exit code."""
    return run_tool(_start_parser, _start, argv)


def _start_parser() -> ToolParser:
    parser = ToolParser("kafka-server-start")
    parser.usage = "kafka-server-start [-daemon] server.properties [--override property=value]*"
    parser.add_argument("file", metavar="server.properties", help="Properties file of the node.")
    parser.add_argument(
        "-daemon",
        "--daemon",
        action="store_true",
        help="Run in the background; the command returns once the node is ready. The output of the node "
        "is appended to kafkaServer.out in $LOG_DIR (./logs by default). Without this option the node runs "
        "in the foreground until SIGTERM or Ctrl-C.",
    )
    parser.option(
        "--override",
        "property=value",
        "A configuration that replaces the one in the file. May be repeated.",
        action="append",
        default=[],
    )
    add_process_options(parser)
    return parser


def _start(options: argparse.Namespace) -> int:
    properties = {**load_config(options.file), **overrides(options.override)}
    start_stop_watcher(options)
    if not options.daemon:
        return _run(properties, options.log_format)
    from moldau.cli.kafka.server.daemon import start_in_background

    timeout_s = None if _needs_no_other(properties) else _READY_TIMEOUT_WITH_OTHERS_S
    return start_in_background(
        lambda ready: _run(properties, options.log_format, lambda ports: ready()), timeout_s
    )


def _needs_no_other(properties: Mapping[str, str]) -> bool:
    """Return whether the node can become ready without other nodes."""
    names = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
    others = any("," in properties.get(name, "") for name in names)
    return "controller" in properties.get("process.roles", "") and not others


def _run(properties: Mapping[str, str], log_format: str, on_ready: Ready | None = None) -> int:
    """Run a node in this process and log to standard output."""
    from moldau.server.run import StartError, run_node

    configure_logging(log_format, logging.INFO, sys.stdout)
    try:
        return run_node(properties, on_ready=on_ready)
    except StartError as error:
        raise ToolError(str(error)) from error


def stop_main(argv: Sequence[str] | None = None) -> int:
    """Run `kafka-server-stop`, which sends SIGTERM to nodes on this machine, and return the exit code."""
    parser = ToolParser(
        "kafka-server-stop",
        notes=lambda: (
            "Nodes receive SIGTERM and shut down in a controlled way. Nodes that moldau.testing started are\n"
            "not stopped."
        ),
    )
    parser.option(
        "--process-role", "ROLE", "Stop only nodes with this role.", choices=["broker", "controller"]
    )
    parser.option("--node-id", "ID", "Stop only the node with this id.")
    try:
        options = parser.parse(sys.argv[1:] if argv is None else argv)
    except UsageError as error:
        warn(f"{error}\nTry 'kafka-server-stop --help'.")
        return 1
    return _stop(options.node_id, options.process_role)


def _stop(node_id: str | None, role: str | None) -> int:
    from moldau.local.running_nodes import running_nodes

    chosen = [node for node in running_nodes() if node.matches(node_id, role)]
    if not chosen:
        warn("No kafka server to stop")
        return 1
    code = 0
    for node in chosen:
        try:
            os.kill(node.pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        except PermissionError:
            warn(f"Not permitted to stop the node with process id {node.pid}: it belongs to another user.")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(start_main())
