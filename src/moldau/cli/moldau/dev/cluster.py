"""`moldau dev --brokers 3`: a cluster on this machine, each node in its own process, until Ctrl-C.

The command supervises the nodes. At the first start it plans and formats the cluster. It starts each node
like `kafka-server-start`, with a properties file stored next to the node's data. When a node exits, it
reports that and keeps the others running. Ctrl-C shuts all nodes down; a second Ctrl-C kills them. Nodes also
shut down when their standard input is closed, so none survives the death of the supervisor.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from moldau import __version__
from moldau.base.json_log import TEXT
from moldau.cli.moldau.dev.node import DEFAULT_PORT
from moldau.cli.moldau.dev.security import announce_clients, dev_security
from moldau.cli.moldau.dev.services import DevServices
from moldau.cli.shared.process import STOP_WITH_INPUT, overrides
from moldau.cli.shared.tool import ToolError
from moldau.local.plan import ClusterPlan, Member, node_folder, roles_of, write_properties
from moldau.local.ports import ReservedPorts
from moldau.local.security.configs import SecurityConfigs

_HOST = "localhost"
#: Distance between a node's broker port and its controller port; upwards if that is a valid port.
_CONTROLLER_DISTANCE = 10_000
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_LOG = "node.log"

Announce = Callable[[str], None]


class _Node:
    """The process of a node, and its log."""

    def __init__(
        self, member: Member, folder: Path, verbose: bool, announce: Announce, log_format: str
    ) -> None:
        self.member = member
        self.folder = folder
        self.log = folder / _LOG
        self._verbose = verbose
        self._announce = announce
        self._log_format = log_format

    def start(self, properties: Path) -> None:
        command = [sys.executable, "-m", "moldau.cli.kafka.server.command", str(properties), STOP_WITH_INPUT]
        command += ["--log-format", self._log_format]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self._verbose else output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if self._verbose:
            threading.Thread(target=self._copy_output, daemon=True).start()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def exit_reason(self) -> str:
        code = self.process.returncode
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def last_log_line(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return lines[-1] if lines else "it logged nothing"

    def _copy_output(self) -> None:
        """Copy the output of the node to its log and to the terminal."""
        if self.process.stdout is not None:
            with self.log.open("ab") as log:
                for line in self.process.stdout:
                    log.write(line)
                    log.flush()
                    self._announce(f"node {self.member.id} | {line.decode(errors='replace').rstrip()}")


def dev_cluster(
    *,
    brokers: int,
    port: int | None,
    data: str,
    settings: Sequence[str] = (),
    announce: Announce = print,
    verbose: bool = False,
    secure: bool = False,
    services: DevServices | None = None,
    metrics_port: int | None = None,
    log_format: str = TEXT,
) -> int:
    """Run the cluster until Ctrl-C or SIGTERM and return the exit code."""
    folder = Path(data).absolute()
    changes = overrides(settings)
    try:
        security = dev_security(folder, secure=secure)
        plan = _plan(folder, brokers, port)
        nodes = [
            _Node(member, node_folder(folder, member.id), verbose, announce, log_format)
            for member in plan.members
        ]
        files = [
            _prepare(plan, node, security, _metrics_property(metrics_port, number) | changes)
            for number, node in enumerate(nodes)
        ]
    except OSError as error:
        raise ToolError(f"Cannot use the data folder {folder}: {error.strerror}") from error
    _check_ports(plan)
    with _stop_on_signals():
        code = _supervise(
            plan, folder, security, list(zip(nodes, files, strict=True)), announce, services, metrics_port
        )
    announce("\nStopped." if sys.stdout.isatty() else "Stopped.")
    return code


def _metrics_property(first_port: int | None, number: int) -> dict[str, str]:
    return {} if first_port is None else {"metrics.port": str(first_port + number)}


def planned_brokers(data: str) -> int | None:
    """Return the number of brokers of the cluster whose data is in the folder; None if there is none."""
    plan = ClusterPlan.load(Path(data).absolute())
    return None if plan is None else sum(member.port is not None for member in plan.members)


def _plan(folder: Path, brokers: int, port: int | None) -> ClusterPlan:
    kept = ClusterPlan.load(folder)
    if kept is None:
        if (folder / "meta.properties").exists():
            raise ToolError(f"{folder} holds the data of a single node; choose another folder with --data.")
        return _new_plan(folder, brokers, DEFAULT_PORT if port is None else port)
    count = sum(member.port is not None for member in kept.members)
    if count != brokers:
        raise ToolError(
            f"{folder} holds the data of a cluster of {count} brokers. Start it with --brokers {count}, or "
            "choose another folder with --data."
        )
    first = kept.members[0].port
    if port is not None and port not in (0, first):
        raise ToolError(
            f"The cluster in {folder} uses the ports from {first} on, which its controllers have recorded. "
            "Start it without --port, or choose another folder with --data."
        )
    return kept


def _new_plan(folder: Path, brokers: int, port: int) -> ClusterPlan:
    free = ReservedPorts("127.0.0.1")
    members = []
    upwards = port + _CONTROLLER_DISTANCE + brokers <= 65_536
    for number, (_, votes) in enumerate(roles_of(brokers, 0)):
        own = port + number if port else free.choose()
        distance = _CONTROLLER_DISTANCE if upwards else -_CONTROLLER_DISTANCE
        controller_port = own + distance if port else free.choose()
        members.append(Member(number + 1, own, controller_port if votes else None))
    free.release()
    plan = ClusterPlan.make(_HOST, tuple(members), random.SystemRandom())
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder)
    return plan


def _prepare(
    plan: ClusterPlan, node: _Node, security: SecurityConfigs | None, changes: Mapping[str, str]
) -> Path:
    from moldau.server.run import StartError, format_if_needed
    from moldau.server.startup.format import FormatOptions

    properties = plan.properties(node.member, node.folder)
    if security is not None:
        properties = security.node_properties(properties)
    properties |= changes
    file = write_properties(node.folder, properties)
    try:
        options = FormatOptions(**plan.format_options(node.member))  # type: ignore[arg-type]
        if security is not None:
            options = options._replace(scram_credentials=security.scram_credentials())
        format_if_needed(properties, options)
    except StartError as error:
        raise ToolError(str(error)) from error
    return file


def _check_ports(plan: ClusterPlan) -> None:
    for port in (port for member in plan.members for port in member.ports.values()):
        ports = ReservedPorts("127.0.0.1")
        try:
            ports.hold(port)
        except OSError as error:
            raise ToolError(
                f"Port {port} is in use. Is another broker running? Stop it, or create a cluster with other "
                "ports in another folder: --port and --data."
            ) from error
        finally:
            ports.release()


class _Stop(BaseException):
    """Ctrl-C or SIGTERM."""


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Stop

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _supervise(
    plan: ClusterPlan,
    folder: Path,
    security: SecurityConfigs | None,
    nodes: Sequence[tuple[_Node, Path]],
    announce: Announce,
    services: DevServices | None,
    metrics_port: int | None,
) -> int:
    started: list[_Node] = []
    try:
        for node, file in nodes:
            node.start(file)
            started.append(node)
        _wait_ready(plan, security, started)
        _announce_ready(plan, folder, security, started, announce, services, metrics_port)
        return _watch(started, announce, services)
    except _Stop:
        return 0
    finally:
        if services is not None:
            services.stop()
        _stop(started)


def _wait_ready(plan: ClusterPlan, security: SecurityConfigs | None, nodes: Sequence[_Node]) -> None:
    from moldau.client.wire.security import SecuritySettings
    from moldau.local.readiness import wait_for_brokers

    properties = {} if security is None else security.client_properties()
    connector = SecuritySettings.from_properties(properties).connector()
    addresses = {each.id: (_HOST, each.port) for each in plan.members if each.port is not None}
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        for node in nodes:
            if not node.running:
                raise ToolError(f"Node {node.member.id} did not start: {node.last_log_line()}")
        try:
            wait_for_brokers(addresses, 0.5, connector)
            return
        except TimeoutError as error:
            if time.monotonic() > deadline:
                raise ToolError(f"The cluster is not ready: {error}") from error


def _announce_ready(
    plan: ClusterPlan,
    folder: Path,
    security: SecurityConfigs | None,
    nodes: Sequence[_Node],
    announce: Announce,
    services: DevServices | None,
    metrics_port: int | None,
) -> None:
    servers = ",".join(f"{_HOST}:{member.port}" for member in plan.members)
    controllers = [member.controller_port for member in plan.members if member.controller_port is not None]
    announce(f"Moldau {__version__} is ready: {len(nodes)} nodes.")
    announce(f"  bootstrap.servers  {servers}")
    announce(f"  controllers        {','.join(f'{_HOST}:{port}' for port in controllers)}")
    announce(f"  data               {folder}")
    if metrics_port is not None:
        urls = (f"http://{_HOST}:{metrics_port + number}/metrics" for number in range(len(nodes)))
        announce(f"  metrics            {' '.join(urls)}")
    for node in nodes:
        where = f"port {node.member.port}, process {node.process.pid}"
        announce(f"  node {node.member.id:<13} {where}, log {os.path.relpath(node.log)}")
    if security is not None:
        announce_clients(security, servers, announce)
    if services is not None:
        services.start(servers, security, announce)
    announce("Press Ctrl-C to stop.")


def _watch(nodes: Sequence[_Node], announce: Announce, services: DevServices | None) -> int:
    """Report nodes that exit. Return, with a failure, when none is left; normally a signal ends this."""
    running = list(nodes)
    while running:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if services is not None:
            services.report_exits(announce)
        for node in [node for node in running if not node.running]:
            running.remove(node)
            again = os.path.relpath(node.folder / "server.properties")
            rest = "The others keep running." if running else "It was the last one."
            announce(f"Node {node.member.id} has exited ({node.exit_reason}). {rest}")
            announce(f"  Its log: {os.path.relpath(node.log)}. Start it again: kafka-server-start {again}")
    return 1


def _stop(nodes: Sequence[_Node]) -> None:
    """Shut all nodes down at once; a node without a quorum does not wait for one."""
    try:
        for node in nodes:
            if node.running:
                node.process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for node in nodes:
            node.process.wait(max(0, deadline - time.monotonic()))
    except (_Stop, subprocess.TimeoutExpired):
        for node in nodes:
            node.process.kill()
            node.process.wait()
