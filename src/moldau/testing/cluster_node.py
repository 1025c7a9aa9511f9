"""One node of a `Cluster`: a real process with its folder, ports and log.

`kill` is `kill -9`: nothing is flushed, and the next start recovers on the same folder and the same ports.
`pause` is SIGSTOP: process and sockets stay, but the node does nothing until `resume`.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from moldau.local.launcher import Launcher, NodeFailed, NodeProcess, NodeSilent, PortTaken
from moldau.local.plan import CONTROLLER_LISTENER
from moldau.testing.blueprint import Blueprint
from moldau.testing.link_control import ENTRY_POINT, LinkControl

#: Maximum time that a start is retried while another process uses one of the node's ports.
_PORT_TIMEOUT_SECONDS = 10.0
_CUT_TIMEOUT_SECONDS = 5.0
_KILL_TIMEOUT_SECONDS = 10.0
_LOG_LINES = 20


class ClusterNode:
    """Created by `Cluster`."""

    def __init__(self, node_id: int, blueprint: Blueprint, start_timeout: float) -> None:
        self.id = node_id
        self.is_broker, self.is_controller = blueprint.roles[node_id - 1]
        self.paused = False
        self._blueprint = blueprint
        self._start_timeout = start_timeout
        self._process: NodeProcess | None = None
        self._links: LinkControl | None = None

    @property
    def port(self) -> int:
        return self._port(self._blueprint.client_listener)

    @property
    def controller_port(self) -> int:
        return self._port(CONTROLLER_LISTENER)

    @property
    def data_dir(self) -> Path:
        return self._blueprint.folder_of(self.id)

    @property
    def log_file(self) -> Path:
        """The node's output, of all its starts."""
        return self.data_dir / "node.log"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.alive()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process, as in `subprocess`; None if it runs or was never started."""
        return None if self._process is None or self.running else self._process.exit_code

    def start(self, *, wait: bool = True) -> None:
        """Start the node unless it runs, and wait until it serves requests unless `wait` is false."""
        if not self.running:
            self._launch()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the started node serves requests; raise `NodeFailed` with the reason if it does not."""
        deadline = time.monotonic() + (_PORT_TIMEOUT_SECONDS if self._ports else 0)
        while True:
            try:
                self._wait_for_ports()
                return
            except PortTaken:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)
                self._launch()

    def stop(self, timeout: float = 30.0) -> None:
        """Shut down cleanly (SIGTERM): all logs are synced, the next start has nothing to recover."""
        self.begin_stop()
        self.wait_stopped(timeout)

    def begin_stop(self) -> None:
        """Send SIGTERM and return at once."""
        if self.paused:
            self.resume()
        os.kill(self._running().pid, signal.SIGTERM)

    def wait_stopped(self, timeout: float = 30.0) -> None:
        if self._process is not None and not self._process.wait_ended(timeout):
            raise TimeoutError(f"node {self.id} did not stop within {timeout:g} s; see {self.log_file}")

    def kill(self) -> None:
        """Kill the process (`kill -9`)."""
        os.kill(self._running().pid, signal.SIGKILL)
        self.wait_stopped(_KILL_TIMEOUT_SECONDS)

    def pause(self) -> None:
        """Pause the process (SIGSTOP), like a very long garbage collection."""
        os.kill(self._running().pid, signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Continue a paused process (SIGCONT)."""
        self.paused = False
        os.kill(self._running().pid, signal.SIGCONT)

    def restart(self, *, wait: bool = True) -> None:
        """Start again on the same folder and ports, after a clean shutdown if the node runs."""
        if self.running:
            self.stop()
        self.start(wait=wait)

    def end(self) -> None:
        """Kill the process, whatever its state, and wait until it is gone."""
        if self._process is not None:
            self._process.end()

    def apply_cuts(self) -> None:
        """Cut the links of a running node; a paused one applies the cuts when it is resumed."""
        if self._links is not None and self.running:
            timeout = 0.0 if self.paused else _CUT_TIMEOUT_SECONDS
            self._links.cut(*self._blueprint.cut_ports(self.id), timeout)

    def _launch(self) -> None:
        self._blueprint.prepare()
        self.paused = False
        self._process = Launcher.shared(ENTRY_POINT).start(self._blueprint.start_request(self.id))
        self._links = LinkControl(self._process.control)

    def _wait_for_ports(self) -> None:
        process = self._process
        if process is None:
            raise RuntimeError(f"node {self.id} was not started")
        try:
            self._blueprint.ports[self.id] = process.wait_ready(self._start_timeout)
        except NodeSilent as failed:
            process.end()
            raise NodeFailed(self._with_log(str(failed))) from failed
        except BaseException:
            process.end()
            raise

    def _with_log(self, sentence: str) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        return "\n".join([f"{sentence}; the end of its log:", *lines[-_LOG_LINES:]]) if lines else sentence

    def _running(self) -> NodeProcess:
        if self._process is None or not self._process.alive():
            raise RuntimeError(f"node {self.id} is not running")
        return self._process

    def _port(self, listener: str) -> int:
        if listener not in self._ports:
            known = ", ".join(self._ports) or "none before it is started"
            raise RuntimeError(f"node {self.id} has no listener {listener} (its listeners: {known})")
        return self._ports[listener]

    @property
    def _ports(self) -> dict[str, int]:
        return self._blueprint.ports[self.id]
