"""Connect workers as processes, and requests to their REST API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.local.ports import ReservedPorts
from tests.harness.rest_proxy import Answer, Api
from tests.harness.waiting import eventually

STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


def standalone_properties(bootstrap: str, folder: Path) -> dict[str, str]:
    """Return the properties that Kafka ships for a standalone worker."""
    return {
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "true",
        "offset.storage.file.filename": str(folder / "connect.offsets"),
        "offset.flush.interval.ms": "10000",
        "plugin.path": "libs/connect-file-4.3.0.jar",
        "tasks.host": "threads",
    }


class Worker:
    """A worker in a process of its own; `start` again after `kill`, on the same port."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str],
        connectors: Sequence[Mapping[str, str]] = (),
        command: str = "connect-standalone",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        ports = ReservedPorts("127.0.0.1")
        self.port = ports.choose()
        ports.release()
        self.folder = folder
        self.id = f"127.0.0.1:{self.port}"
        self.api = Api(self.port)
        self._command = command
        self._environment = {**os.environ, **(environment or {})}
        listeners = {"listeners": f"http://127.0.0.1:{self.port}"}
        self._files = [
            write_properties(folder / f"worker-{self.port}.properties", {**listeners, **properties})
        ]
        self._files += [write_properties(folder / f"{each['name']}.properties", each) for each in connectors]
        self._log = folder / f"worker-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Worker:
        before = len(self.log)
        self.begin()
        process = self._process
        assert process is not None
        eventually(
            lambda: "is ready" in self.log[before:] or process.poll() is not None, what="the worker is ready"
        )
        assert process.poll() is None, self.log[-3000:]
        return self

    def begin(self) -> None:
        """Start the process without waiting for it."""
        command = [sys.executable, "-m", "moldau", self._command, *map(str, self._files)]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=self._environment,
                start_new_session=True,
            )

    def wait(self, timeout: float = 60) -> int:
        """Wait until the process ends by itself, and return its exit code."""
        assert self._process is not None
        return self._process.wait(timeout)

    def kill(self) -> None:
        """End the process, and processes it started, with SIGKILL."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """Ask the process to stop, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(timeout=60)
        self._process = None
        return code

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    # Requests.

    def states(self, name: str) -> tuple[str, list[str]]:
        """Return the states of a connector and of its tasks."""
        answer = self.api("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return f"{answer.status}", []
        return answer.body["connector"]["state"], [each["state"] for each in answer.body["tasks"]]

    def wait_for(
        self,
        name: str,
        connector: str = "RUNNING",
        tasks: Sequence[str] = ("RUNNING",),
        timeout: float = 60,
    ) -> None:
        """Wait for the states of a connector and its tasks."""
        wanted = (connector, list(tasks))
        eventually(
            lambda: self.states(name) == wanted,
            timeout=timeout,
            what=f"{name} is {wanted}, not {self._description(name)}\n{self.log[-2000:]}",
        )

    def _description(self, name: str) -> Any:
        return self.api("GET", f"/connectors/{name}/status").body

    def create(self, name: str, config: Mapping[str, str]) -> Answer:
        """Create or replace a connector, also while the workers rebalance."""

        def put() -> Answer | None:
            answer = self.api("PUT", f"/connectors/{name}/config", dict(config))
            return None if answer.status == 409 else answer

        answer = eventually(put, what=f"{name} is accepted")
        assert answer.status in (200, 201), json.dumps(answer.body)
        return answer


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file; none if it does not exist yet."""
    return path.read_text().splitlines() if path.exists() else []
