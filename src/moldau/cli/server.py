"""Starting and stopping nodes: `kafka-server-start`, `kafka-server-stop`, `moldau dev`, `moldau server`."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau import __version__
from moldau.base.properties import PropertiesError, load_properties

_USAGE = "kafka-server-start [-daemon] server.properties [--override property=value]*"
_LOG_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
#: How the command line of a node looks to `ps`.
_NODE_COMMAND = re.compile(r"(kafka-server-start(\.sh)?|moldau(\.cli\.main)? (server|dev))( |$)")


def start_main(argv: Sequence[str] | None = None) -> int:
    """`kafka-server-start`: run a node with the properties file that also starts Apache Kafka."""
    parser = argparse.ArgumentParser(
        prog="kafka-server-start",
        usage=_USAGE,
        description="Start a node in the foreground until SIGTERM or Ctrl-C.",
    )
    parser.add_argument(
        "-daemon", "--daemon", action="store_true", help="go on in the background once it is ready"
    )
    parser.add_argument("file", metavar="server.properties")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="property=value",
        help="a value that wins over the one in the file; may be repeated",
    )
    parser.add_argument("--version", action="version", version=f"Moldau {__version__}")
    options = parser.parse_args(argv)
    try:
        properties = {**load_properties(options.file), **_overrides(options.override)}
    except OSError as error:
        return _complain(f"Cannot read {options.file}: {error.strerror}")
    except (PropertiesError, ValueError) as error:
        return _complain(str(error))
    if options.daemon:
        return _daemon(properties)
    return run(properties)


def run(properties: Mapping[str, str], on_ready: Callable[[dict[str, int]], None] | None = None) -> int:
    """Run a node in this process, saying in one sentence why if it cannot start."""
    from moldau.server.run import StartError, run_node

    logging.basicConfig(level=logging.INFO, format=_LOG_FORMAT, stream=sys.stdout)
    try:
        return run_node(properties, on_ready=on_ready)
    except StartError as error:
        return _complain(str(error))


def dev(
    *,
    port: int = 9092,
    data: str = "data",
    overrides: Sequence[str] = (),
    announce: Callable[[str], None] = print,
    verbose: bool = False,
) -> int:
    """`moldau dev`: a ready node without any configuration, formatted by itself."""
    from moldau.server.run import StartError, format_if_needed

    folder = Path(data).absolute()
    try:
        properties = {**dev_properties(port, folder), **_overrides(overrides)}
        folder.mkdir(parents=True, exist_ok=True)
        format_if_needed(properties)
    except (StartError, ValueError) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"Cannot use the data folder {folder}: {error.strerror}")
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format=_LOG_FORMAT)

    def on_ready(ports: dict[str, int]) -> None:
        announce(f"Moldau {__version__} is ready.")
        announce(f"  bootstrap.servers  localhost:{ports['PLAINTEXT']}")
        announce(f"  data               {folder}")
        announce("Press Ctrl-C to stop.")

    return run(properties, on_ready)


def dev_properties(port: int, folder: Path) -> dict[str, str]:
    """A single node that clients of this machine reach as `localhost`."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://localhost:{port},CONTROLLER://localhost:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "log.dirs": str(folder),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def stop_main(argv: Sequence[str] | None = None) -> int:
    """`kafka-server-stop`: SIGTERM to the nodes of this machine."""
    parser = argparse.ArgumentParser(
        prog="kafka-server-stop", description="Stop the nodes that run on this machine, in order (SIGTERM)."
    )
    parser.add_argument("--process-role", choices=["broker", "controller"], help="only nodes with this role")
    parser.add_argument("--node-id", help="only the node with this id")
    options = parser.parse_args(argv)
    stopped = 0
    for pid, command in _running_nodes():
        if _matches(command, options.node_id, options.process_role):
            os.kill(pid, signal.SIGTERM)
            stopped += 1
    if not stopped:
        return _complain("No kafka server to stop")
    return 0


def _running_nodes() -> list[tuple[int, str]]:
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True
    ).stdout
    found = []
    for line in listing.splitlines():
        pid, _, command = line.strip().partition(" ")
        if _NODE_COMMAND.search(command) and int(pid) != os.getpid():
            found.append((int(pid), command))
    return found


def _matches(command: str, node_id: str | None, role: str | None) -> bool:
    if node_id is None and role is None:
        return True
    words = [word for word in command.split() if word.endswith(".properties")]
    try:
        properties = (
            load_properties(words[0]) if words else {"node.id": "1", "process.roles": "broker,controller"}
        )
    except (OSError, PropertiesError):
        return False
    if node_id is not None and properties.get("node.id", properties.get("broker.id")) != node_id:
        return False
    return role is None or role in [each.strip() for each in properties.get("process.roles", "").split(",")]


def _overrides(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ValueError(f"'{word}' is not of the form property=value")
        found[name.strip()] = value.strip()
    return found


def _daemon(properties: Mapping[str, str]) -> int:
    """Go on in the background; this process ends when the node is ready or has said why it is not."""
    folder = Path(os.environ.get("LOG_DIR", "logs"))
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "kafkaServer.out"
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        if os.read(reading, 1) == b"+":
            return 0
        return _complain(f"The server did not start; see {output}")
    os.setsid()
    os.close(reading)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (descriptor, 1), (descriptor, 2)):
        os.dup2(source, target)
    code = run(properties, lambda ports: _report_and_close(writing))
    os._exit(code)


def _report_and_close(descriptor: int) -> None:
    os.write(descriptor, b"+")
    os.close(descriptor)


def _complain(sentence: str) -> int:
    sys.stderr.write(sentence + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(start_main())
