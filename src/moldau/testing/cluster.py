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
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from moldau.testing.launcher import Launcher, NodeFailed, NodeProcess

__all__ = ["Cluster", "NodeFailed"]


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
        self._data_dir = Path(data_dir) if data_dir is not None else None
        self._start_timeout = start_timeout
        self._process: NodeProcess | None = None
        self._ports: dict[str, int] = {}

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._ports["PLAINTEXT"]

    @property
    def controller_port(self) -> int:
        return self._ports["CONTROLLER"]

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

    def start(self) -> Cluster:
        if self.running:
            return self
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="moldau-"))
        self._data_dir.mkdir(parents=True, exist_ok=True)
        properties = self._properties()
        self._process = Launcher.shared().start(properties, str(self.log_file))
        self._ports = self._process.wait_ready(self._start_timeout)
        return self

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
        if self.running:
            self.kill() if not self._keep_data else self.stop()
        if not self._keep_data and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None

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

    def _running(self) -> NodeProcess:
        if self._process is None or not self._process.alive():
            raise RuntimeError("the node is not running")
        return self._process

    def _end(self, number: signal.Signals, timeout: float) -> None:
        process = self._running()
        os.kill(process.pid, number)
        deadline = time.monotonic() + timeout
        while process.alive():
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the node still runs {timeout} s after {number.name}; see {self.log_file}"
                )
            time.sleep(0.002)
        self._process = None

    def _properties(self) -> dict[str, str]:
        broker, controller = self._ports.get("PLAINTEXT", 0), self._ports.get("CONTROLLER", 0)
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller or 9093}",
            "log.dirs": str(self.data_dir / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._overrides,
        }


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
