"""One node of a `Cluster`: a real process, with its folder, its ports and its log.

`kill` is `kill -9`: nothing is flushed, and the next start goes through recovery on the same folder and the
same ports. `pause` is SIGSTOP: the process is there, its sockets too, and it does nothing until `resume`.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from moldau.local.launcher import Launcher, NodeFailed, NodeProcess, NodeSilent, PortTaken
from moldau.local.plan import BROKER_LISTENER
from moldau.local.single_node import CONTROLLER_LISTENER
from moldau.testing.blueprint import Blueprint

#: How long a port may be somebody else's between two starts: any connection may get it as its own end.
_PORT_PATIENCE_S = 10.0
_ORDER_PATIENCE_S = 5.0
_KILL_PATIENCE_S = 10.0
_LAST_LINES = 20


class ClusterNode:
    """Made by `Cluster`, which knows how its nodes are to be started."""

    def __init__(self, node_id: int, blueprint: Blueprint, start_timeout: float) -> None:
        self.id = node_id
        self.is_broker, self.is_controller = blueprint.roles[node_id - 1]
        self.paused = False
        self._blueprint = blueprint
        self._start_timeout = start_timeout
        self._process: NodeProcess | None = None

    @property
    def port(self) -> int:
        return self._port(BROKER_LISTENER)

    @property
    def controller_port(self) -> int:
        return self._port(CONTROLLER_LISTENER)

    @property
    def data_dir(self) -> Path:
        return self._blueprint.folder_of(self.id)

    @property
    def log_file(self) -> Path:
        """What the node said, over all its starts."""
        return self.data_dir / "node.log"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.alive()

    @property
    def exit_code(self) -> int | None:
        """Of the process that ran last, as `subprocess` has it; None while it runs or before it did."""
        return None if self._process is None or self.running else self._process.exit_code

    def start(self, *, wait: bool = True) -> None:
        """Start the node, and wait until it serves unless told not to; nothing happens if it runs."""
        if not self.running:
            self._launch()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Until a node that was started without waiting serves; `NodeFailed` says why it does not."""
        patience = time.monotonic() + (_PORT_PATIENCE_S if self._ports else 0)
        while True:
            try:
                self._take_ports()
                return
            except PortTaken:
                if time.monotonic() >= patience:
                    raise
                time.sleep(0.05)
                self._launch()

    def stop(self, timeout: float = 30.0) -> None:
        """An orderly shutdown, as by SIGTERM: everything synced, nothing to recover."""
        self.begin_stop()
        self.wait_stopped(timeout)

    def begin_stop(self) -> None:
        """SIGTERM, without waiting."""
        if self.paused:
            self.resume()
        os.kill(self._running().pid, signal.SIGTERM)

    def wait_stopped(self, timeout: float = 30.0) -> None:
        if self._process is not None and not self._process.wait_ended(timeout):
            raise TimeoutError(f"node {self.id} still runs after {timeout:g} s; see {self.log_file}")

    def kill(self) -> None:
        """`kill -9`: the process is gone at once."""
        os.kill(self._running().pid, signal.SIGKILL)
        self.wait_stopped(_KILL_PATIENCE_S)

    def pause(self) -> None:
        """SIGSTOP: the process stands still, as in a very long pause of its garbage collector."""
        os.kill(self._running().pid, signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """The paused process goes on where it was."""
        self.paused = False
        os.kill(self._running().pid, signal.SIGCONT)

    def restart(self, *, wait: bool = True) -> None:
        """Start again on the same folder and ports; stops the node first if it runs."""
        if self.running:
            self.stop()
        self.start(wait=wait)

    def end(self) -> None:
        """The process is gone afterwards, whatever state it was in."""
        if self._process is not None:
            self._process.end()

    def follow_cuts(self) -> None:
        """Tell a running node which of its links are cut; one that is paused will know when it goes on."""
        if self._process is not None and self.running:
            patience = 0.0 if self.paused else _ORDER_PATIENCE_S
            self._process.orders.cut(*self._blueprint.cut_off(self.id), patience)

    def _launch(self) -> None:
        self._blueprint.prepare()
        self.paused = False
        self._process = Launcher.shared().start(self._blueprint.order(self.id))

    def _take_ports(self) -> None:
        process = self._process
        if process is None:
            raise RuntimeError("the node was not started")
        try:
            self._blueprint.ports[self.id] = process.wait_ready(self._start_timeout)
        except NodeSilent as failed:
            process.end()
            raise NodeFailed(self._with_last_words(str(failed))) from failed
        except BaseException:
            process.end()
            raise

    def _with_last_words(self, sentence: str) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        return "\n".join([f"{sentence}; its last words:", *lines[-_LAST_LINES:]]) if lines else sentence

    def _running(self) -> NodeProcess:
        if self._process is None or not self._process.alive():
            raise RuntimeError("the node is not running")
        return self._process

    def _port(self, listener: str) -> int:
        if listener not in self._ports:
            known = ", ".join(self._ports) or "none before it is started"
            raise RuntimeError(f"the node has no listener {listener} (there is: {known})")
        return self._ports[listener]

    @property
    def _ports(self) -> dict[str, int]:
        return self._blueprint.ports[self.id]
