"""A node in a process of its own, on a free port, with its data in a temporary folder.

The process is real and so are its sockets and files: what a test sees is what production does. Starting
is quick because nodes are forked from a launcher that has everything imported (see `launcher.py`).
`kill` is `kill -9`: nothing is flushed, and `restart` then goes through recovery on the same folder and
the same port.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from moldau.base.single_node import CONTROLLER_LISTENER, single_node_properties
from moldau.testing.launcher import Launcher, NodeFailed, NodeProcess, NodeSilent, PortTaken

__all__ = ["Cluster", "NodeFailed"]

#: How long a port may be somebody else's between two starts: any connection may get it as its own end.
_PORT_PATIENCE_S = 10.0
_LAST_LINES = 20


class Cluster:
    """One node, formatted and started on entering the context, gone without a trace on leaving it.

    `config` holds broker settings by Kafka's names. With `data_dir` the data stays there afterwards;
    a folder that already holds a node's data is used as it is.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        self._overrides = {name: _text(value) for name, value in (config or {}).items()}
        self._keep_data = data_dir is not None
        self._data_dir = Path(data_dir).absolute() if data_dir is not None else None
        self._remove_data: weakref.finalize[..., Cluster] | None = None
        self._start_timeout = start_timeout
        self._process: NodeProcess | None = None
        self._ports: dict[str, int] = {}

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._port("PLAINTEXT")

    @property
    def controller_port(self) -> int:
        return self._port("CONTROLLER")

    @property
    def data_dir(self) -> Path:
        if self._data_dir is None:
            raise RuntimeError("the cluster has no data folder before it is started")
        return self._data_dir

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
        """Of the node that ran last, as `subprocess` has it; None while it runs or before it did."""
        return None if self._process is None or self.running else self._process.exit_code

    def start(self) -> Cluster:
        """Start the node and wait until it serves; nothing happens if it runs already."""
        if self.running:
            return self
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="moldau-"))
            self._remove_data = weakref.finalize(self, shutil.rmtree, self._data_dir, ignore_errors=True)
        self._data_dir.mkdir(parents=True, exist_ok=True)
        patience = time.monotonic() + (_PORT_PATIENCE_S if self._ports else 0)
        while True:
            try:
                self._launch()
                return self
            except PortTaken:
                if time.monotonic() >= patience:
                    raise
                time.sleep(0.05)

    def stop(self, timeout: float = 30.0) -> None:
        """An orderly shutdown, as by SIGTERM: everything synced, nothing to recover."""
        self._end(signal.SIGTERM, timeout)

    def kill(self) -> None:
        """`kill -9`: the process is gone at once."""
        self._end(signal.SIGKILL, 10.0)

    def restart(self) -> None:
        """Start again on the same folder and port; stops the node first if it runs."""
        if self.running:
            self.stop()
        self.start()

    def close(self) -> None:
        """Stop the node and remove its data, unless `data_dir` was given."""
        try:
            if self.running:
                self.stop() if self._keep_data else self.kill()
        finally:
            if self._process is not None:
                self._process.end()
            if self._remove_data is not None:
                self._remove_data()
                self._data_dir = self._remove_data = None

    def __enter__(self) -> Cluster:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _launch(self) -> None:
        temporary = None if self._keep_data else str(self.data_dir)
        process = Launcher.shared().start(self._properties(), str(self.log_file), temporary)
        self._process = process
        try:
            self._ports = process.wait_ready(self._start_timeout)
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
            raise RuntimeError(f"the cluster has no listener {listener} (there is: {known})")
        return self._ports[listener]

    def _end(self, number: signal.Signals, timeout: float) -> None:
        process = self._running()
        os.kill(process.pid, number)
        if not process.wait_ended(timeout):
            raise TimeoutError(f"the node still runs {timeout} s after {number.name}; see {self.log_file}")

    def _properties(self) -> dict[str, str]:
        broker, controller = self._ports.get("PLAINTEXT", 0), self._ports.get(CONTROLLER_LISTENER, 0)
        folder = str(self.data_dir / "logs")
        return {**single_node_properties("127.0.0.1", broker, controller, folder), **self._overrides}


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
