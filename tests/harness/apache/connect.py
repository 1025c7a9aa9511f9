"""Kafka Connect's distributed worker as an oracle for ours."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.harness.apache.node import free_port, java_command
from tests.harness.connect import write_properties
from tests.harness.rest_proxy import Api
from tests.harness.waiting import eventually

_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"


class ApacheWorker:
    def __init__(self, libs: Path, folder: Path, properties: Mapping[str, str]) -> None:
        self.port = free_port()
        self.api = Api(self.port)
        self.id = f"127.0.0.1:{self.port}"
        given = {
            "listeners": f"http://127.0.0.1:{self.port}",
            "plugin.discovery": "hybrid_warn",
            **properties,
        }
        self._file = write_properties(folder / f"apache-{self.port}.properties", given)
        self._command = java_command(libs, _MAIN, str(self._file))
        self._command.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        self._log = folder / f"apache-{self.port}.log"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> ApacheWorker:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=output, cwd=self._folder, start_new_session=True
            )
        eventually(self._healthy, timeout=120, every=0.5, what="Kafka Connect is healthy")
        return self

    def _healthy(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log[-3000:]
        try:
            return self.api.raw("GET", "/health")[0] == 200
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> ApacheWorker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
