"""Spark's own cluster on this machine, started from the wheel: one master and workers with one core each."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.harness.waiting import eventually
from tests.pipelines.sink.drivers import descendants

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class StandaloneCluster:
    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = f"spark://127.0.0.1:{_free_port()}"

    def executors(self) -> list[int]:
        """The processes that run tasks; workers start new ones for those that die."""
        return [pid for process in self._processes for pid in descendants(process.pid) if _is_executor(pid)]

    def kill_executor(self, chance: random.Random) -> bool:
        found = self.executors()
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(chance.choice(found), signal.SIGKILL)
            return True
        return False

    def __enter__(self) -> StandaloneCluster:
        port = self.url.rpartition(":")[2]
        self._start("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        for number in range(self._workers):
            folder = self._folder / f"worker-{number}"
            where = ("--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(folder))
            self._start("worker.Worker", *where, "--cores", "1", "--memory", "1g", self.url)
        eventually(self._complete, timeout=90, what="workers register with the master")
        return self

    def __exit__(self, *_: object) -> None:
        mine = {pid for process in self._processes for pid in descendants(process.pid)}
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            process.wait(10)

    def _start(self, name: str, *arguments: str) -> None:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with self._log().open("ab") as log:
            process = subprocess.Popen(
                [str(_CLASS), f"org.apache.spark.deploy.{name}", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        self._processes.append(process)

    def _complete(self) -> bool:
        return self._log().read_text(errors="replace").count("Successfully registered with") >= self._workers

    def _log(self) -> Path:
        return self._folder / "standalone.log"


def _is_executor(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
