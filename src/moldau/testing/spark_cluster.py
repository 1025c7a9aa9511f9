"""A standalone Spark cluster on this machine, from the installed PySpark alone: a master and some workers.

    with SparkCluster(workers=2) as cluster:
        spark = pipelines.session("test", master=cluster.url, config=cluster.session_config)
        cluster.kill_worker(0)

Each worker and its executors are a process group: killing a worker also kills its executors, as the failure
of a machine would. All processes end with the context.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from moldau.local.ports import ReservedPorts

_HOST = "127.0.0.1"
_PATIENCE_S = 90.0


class SparkCluster:
    def __init__(self, workers: int = 2, *, cores: int = 1, memory: str = "1g") -> None:
        self._workers = workers
        self._cores = cores
        self._memory = memory
        self._folder = tempfile.TemporaryDirectory(prefix="spark-cluster-", ignore_cleanup_errors=True)
        self._ports = ReservedPorts(_HOST)
        self._port, self._web_port = self._ports.choose(), self._ports.choose()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"spark://{_HOST}:{self._port}"

    @property
    def process_ids(self) -> list[int]:
        """The master and the workers; executors are processes that workers have started."""
        return [process.pid for process in self._processes]

    @property
    def session_config(self) -> Mapping[str, str]:
        """Settings for a session on this machine: small executors that start quickly."""
        return {
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.executor.cores": str(self._cores),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": str(self._workers * self._cores),
        }

    def __enter__(self) -> SparkCluster:
        try:
            master = ["org.apache.spark.deploy.master.Master", "--host", _HOST]
            self._start("master", [*master, "--port", str(self._port), "--webui-port", str(self._web_port)])
            for index in range(self._workers):
                self._start_worker(index)
            self._wait_for_workers()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def kill_worker(self, index: int) -> None:
        """Kill a worker and its executors (`kill -9`)."""
        process = self._processes[1 + index]
        _kill_group(process, signal.SIGKILL)
        process.wait()

    def alive_workers(self) -> int:
        """Return the number of workers that the master reports as alive."""
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._web_port}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (urllib.error.URLError, OSError):
            return 0

    def close(self) -> None:
        for process in reversed(self._processes):
            _kill_group(process, signal.SIGKILL)
            process.wait()
        self._processes.clear()
        self._ports.release()
        self._folder.cleanup()

    def _start_worker(self, index: int) -> None:
        folder = Path(self._folder.name) / f"work-{index}"
        size = ["--cores", str(self._cores), "--memory", self._memory, "--work-dir", str(folder)]
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", _HOST, "--webui-port", "0"]
        self._start(f"worker-{index}", [*worker, *size, self.url])

    def _start(self, name: str, arguments: Sequence[str]) -> None:
        self._processes.append(spark_class(arguments, Path(self._folder.name) / f"{name}.log"))

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while self.alive_workers() < self._workers:
            ended = [process for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = sorted(Path(self._folder.name).glob("*.log"))
                said = "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in logs)
                raise RuntimeError(f"the Spark cluster did not start\n{said}")
            time.sleep(0.1)


def spark_class(arguments: Sequence[str], log: Path, *, memory: str = "256m") -> subprocess.Popen[bytes]:
    """Start a Spark process from the installed PySpark, with options for a quick start."""
    from moldau.pipelines.spark.executables import java_home, spark_home
    from moldau.pipelines.spark.java import find_java
    from moldau.pipelines.spark.user_folders import cache_folder

    home = spark_home()
    java = java_home(find_java(os.environ), cache_folder())
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": memory,
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _kill_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
