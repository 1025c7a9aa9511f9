"""Starting and stopping nodes: `kafka-server-start`, `kafka-server-stop`, `moldau dev`, `moldau server`."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau import __version__
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.tool import ToolError, load_config, run_tool, warn
from moldau.local.plan import CONTROLLER_LISTENER, single_node_properties

Ready = Callable[[dict[str, int]], None]

#: Said to nodes by whoever supervises them.
STOP_WITH_INPUT = "--stop-with-input"
_PATIENCE_WITH_OTHERS_S = 3.0
_LOG_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


def start_main(argv: Sequence[str] | None = None) -> int:
    """`kafka-server-start`: run a node with the properties file that also starts Apache Kafka."""
    return run_tool(_start_parser, _start, argv)


def _start_parser() -> ToolParser:
    parser = ToolParser(
        "kafka-server-start",
        "Start a node. It runs in the foreground until SIGTERM or Ctrl-C.",
    )
    parser.usage = "kafka-server-start [-daemon] server.properties [--override property=value]*"
    parser.add_argument("file", metavar="server.properties", help="The properties of the node.")
    parser.add_argument(
        "-daemon",
        "--daemon",
        action="store_true",
        help="Go on in the background; the command ends when the node is ready.\n"
        "What the node says goes to kafkaServer.out in $LOG_DIR, or ./logs.",
    )
    parser.option(
        "--override",
        "property=value",
        "A value that wins over the one in the file; may be repeated.",
        action="append",
        default=[],
    )
    parser.add_argument(STOP_WITH_INPUT, action="store_true", help=argparse.SUPPRESS)
    return parser


def _start(options: argparse.Namespace) -> int:
    properties = {**load_config(options.file), **overrides(options.override)}
    if options.stop_with_input:
        threading.Thread(target=_stop_with_input, daemon=True).start()
    if not options.daemon:
        return run(properties)
    from moldau.cli.kafka.server.daemon import start_in_background

    patience_s = None if _is_alone(properties) else _PATIENCE_WITH_OTHERS_S
    return start_in_background(lambda ready: run(properties, lambda ports: ready()), patience_s)


def _is_alone(properties: Mapping[str, str]) -> bool:
    """Whether the node can become ready without others."""
    names = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
    others = any("," in properties.get(name, "") for name in names)
    return "controller" in properties.get("process.roles", "") and not others


def _stop_with_input() -> None:
    """End in order when nobody holds the other end of our standard input any more."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def overrides(words: Sequence[str]) -> dict[str, str]:
    """Settings of the form `property=value`; the value may be empty and may hold another `=`."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"'{word}' is not of the form property=value")
        found[name.strip()] = value.strip()
    return found


def run(properties: Mapping[str, str], on_ready: Ready | None = None) -> int:
    """Run a node in this process, its log on standard output."""
    from moldau.server.run import StartError, run_node

    logging.basicConfig(level=logging.INFO, format=_LOG_FORMAT, stream=sys.stdout)
    try:
        return run_node(properties, on_ready=on_ready)
    except StartError as error:
        raise ToolError(str(error)) from error


def dev(
    *,
    port: int = 9092,
    data: str = "data",
    settings: Sequence[str] = (),
    announce: Callable[[str], None] = print,
    verbose: bool = False,
) -> int:
    """`moldau dev`: a ready node without any configuration, formatted by itself."""
    from moldau.server.run import StartError, format_if_needed, run_node

    folder = Path(data).absolute()

    def on_ready(ports: dict[str, int]) -> None:
        clients = next(number for name, number in ports.items() if name != CONTROLLER_LISTENER)
        announce(f"Moldau {__version__} is ready.")
        announce(f"  bootstrap.servers  localhost:{clients}")
        announce(f"  data               {folder}")
        announce("Press Ctrl-C to stop.")

    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format=_LOG_FORMAT)
    properties = {**single_node_properties("localhost", port, 0, str(folder)), **overrides(settings)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        format_if_needed(properties)
        code = run_node(properties, on_ready=on_ready)
    except StartError as error:
        raise ToolError(_what_to_do(error, port, data)) from error
    except OSError as error:
        raise ToolError(f"Cannot use the data folder {folder}: {error.strerror}") from error
    # A terminal shows ^C where the cursor was.
    announce("\nStopped." if sys.stdout.isatty() else "Stopped.")
    return code


def _what_to_do(error: Exception, port: int, data: str) -> str:
    from moldau.network.listener import ListenError

    if not isinstance(error.__cause__, ListenError) or str(port) not in str(error):
        return str(error)
    return (
        f"Port {port} is in use. Is another broker running? Stop it, or choose another port: "
        f"{_own_name()} dev --port {port + 10} --data {data}-{port + 10}"
    )


def _own_name() -> str:
    """How to call `moldau` again from here: it may not be on the path."""
    if shutil.which("moldau") is not None:
        return "moldau"
    return "python -m moldau" if sys.argv[0].endswith("__main__.py") else sys.argv[0]


def stop_main(argv: Sequence[str] | None = None) -> int:
    """`kafka-server-stop`: SIGTERM to the nodes of this machine."""
    parser = ToolParser(
        "kafka-server-stop",
        "Stop the Moldau nodes that run on this machine, in an orderly way (SIGTERM).\n"
        "Nodes of `moldau.testing` belong to their tests and are left alone.",
    )
    parser.option("--process-role", "ROLE", "Only nodes with this role.", choices=["broker", "controller"])
    parser.option("--node-id", "ID", "Only the node with this id.")
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
            warn(f"The node with process id {node.pid} belongs to another user.")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(start_main())
