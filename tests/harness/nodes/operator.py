"""A node as an operator starts it: a properties file, `kafka-storage format`, `kafka-server-start`."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.harness.apache.node import free_port
from tests.harness.waiting import eventually

_BIN = Path(sys.executable).parent


class OperatorNode:
    def __init__(self, folder: Path, config: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.file = folder / "server.properties"
        controller = free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "log.dirs": str(folder / "logs"),
            **(config or {}),
        }
        self.file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self.output = folder / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def format(self) -> None:
        cluster_id = self._tool("kafka-storage", "random-uuid").strip()
        self._tool("kafka-storage", "format", "-t", cluster_id, "-c", str(self.file), "--standalone")

    def start(self, *, open_files: int | None = None) -> None:
        """Start the node and wait until it is ready, optionally with a limit on open files."""
        self.launch(open_files=open_files)
        eventually(lambda: "is ready" in self.printed() or not self.running, what="the node is ready")
        assert self.running, self.printed()

    def launch(self, *, open_files: int | None = None) -> None:
        start = shlex.join([str(_BIN / "kafka-server-start"), str(self.file)])
        limit = f"ulimit -n {open_files} && " if open_files is not None else ""
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", f"{limit}exec {start}"], stdout=output, stderr=output
            )

    def wait(self, timeout: float = 30) -> int:
        assert self._process is not None
        return self._process.wait(timeout)

    def printed(self) -> str:
        return self.output.read_text(errors="replace")

    def stop(self) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise

    def _tool(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(_BIN / name), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
