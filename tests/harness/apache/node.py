"""Apache Kafka as an oracle: one combined node with the interface of `moldau.testing.Cluster`.

A test that passes against it is correct. The jars are in the folder that the environment
variable `KAFKA_LIBS` names; `make interop` downloads them with Maven if it is not set.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from moldau.local.ports import ReservedPorts

_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.stdout.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""
_STARTED = "Kafka Server started"


class ApacheFailed(RuntimeError):
    """Apache Kafka did not start; the message ends with its output."""


def kafka_libs() -> Path | None:
    """Return the folder of Apache Kafka's jars, if `KAFKA_LIBS` is set."""
    folder = os.environ.get("KAFKA_LIBS")
    return Path(folder) if folder else None


#: For a quick start; benchmarks need the full JIT compiler instead.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def java_command(
    libs: Path, main: str, *arguments: str, heap: str = "256m", options: Sequence[str] = QUICK_START
) -> list[str]:
    return ["java", *options, f"-Xmx{heap}", "-cp", f"{libs}/*", main, *arguments]


_PORTS = ReservedPorts("127.0.0.1")


def free_port() -> int:
    """Return a port that stays reserved while this process lives, even while its node is down."""
    return _PORTS.choose()


def random_id() -> str:
    """Return an id as `kafka-storage random-uuid` generates it."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "x")


class ApacheCluster:
    """One node of Apache Kafka, formatted and started on entry, stopped and deleted on exit."""

    def __init__(
        self,
        *,
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        start_timeout: float = 60.0,
        libs: Path | None = None,
        heap: str = "512m",
        options: Sequence[str] = QUICK_START,
        cluster_id: str | None = None,
        voters: str | None = None,
        broker_listener: str = "PLAINTEXT",
        format_options: Sequence[str] = (),
    ) -> None:
        """`voters` are the first controllers (`--initial-controllers`) of a node that is one of several.

        `broker_listener` is the name of the listener for clients; `format_options` are for `kafka-storage`.
        """
        folder = libs or kafka_libs()
        if folder is None:
            raise ApacheFailed("set KAFKA_LIBS to the folder with Apache Kafka's jars")
        self.libs = folder
        self._heap = heap
        self._options = options
        self._overrides = {name: _text(value) for name, value in (config or {}).items()}
        self._keep_data = data_dir is not None
        self._data_dir = Path(data_dir) if data_dir is not None else None
        self._start_timeout = start_timeout
        self._cluster_id = cluster_id or random_id()
        self._format = ["--initial-controllers", voters] if voters else ["--standalone"]
        self._format += format_options
        self._broker_listener = broker_listener
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0
        self.port = 0
        self.controller_port = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        if self._data_dir is None:
            raise RuntimeError("the cluster has no data folder before it is started")
        return self._data_dir

    @property
    def log_file(self) -> Path:
        return self.data_dir / "node.log"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the node is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> ApacheCluster:
        self.launch()
        self.wait_started()
        return self

    def launch(self) -> None:
        """Start the process without waiting: a node of a cluster needs the others."""
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="apache-"))
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_port()
        self.controller_port = self.controller_port or free_port()
        properties = self.write_properties()
        self._format_if_needed(properties)
        self._said_before = self.log_file.stat().st_size if self.log_file.exists() else 0
        command = java_command(
            self.libs, "kafka.Kafka", str(properties), heap=self._heap, options=self._options
        )
        command.insert(1, f"-Dlog4j2.configurationFile={self._write('log4j2.properties', _LOGGING)}")
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def override(self, config: Mapping[str, str | int | bool | None]) -> None:
        """Set configs for the next start; None removes one."""
        changed = {**self._overrides, **config}
        self._overrides = {name: _text(value) for name, value in changed.items() if value is not None}

    def stop(self, timeout: float = 30.0) -> None:
        self._end(signal.SIGTERM, timeout)

    def kill(self) -> None:
        self._end(signal.SIGKILL, 10.0)

    def restart(self) -> None:
        if self.running:
            self.stop()
        self.start()

    def close(self) -> None:
        if self.running:
            self.stop() if self._keep_data else self.kill()
        if not self._keep_data and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None

    def __enter__(self) -> ApacheCluster:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, number: signal.Signals, timeout: float) -> None:
        process = self._process
        if process is None:
            raise RuntimeError("the node is not running")
        process.send_signal(number)
        process.wait(timeout)
        self._process = None

    def _format_if_needed(self, properties: Path) -> None:
        folders = self._overrides.get("log.dirs", str(self.data_dir / "logs")).split(",")
        if (Path(folders[0]) / "meta.properties").exists():
            return
        arguments = ["format", "-t", self._cluster_id, "-c", str(properties), *self._format]
        command = java_command(self.libs, "kafka.tools.StorageTool", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise ApacheFailed(done.stdout + done.stderr)

    def wait_started(self) -> None:
        deadline = time.monotonic() + self._start_timeout
        while True:
            said = self.log_file.read_bytes()[self._said_before :].decode(errors="replace")
            if _STARTED in said:
                return
            if not self.running or time.monotonic() > deadline:
                raise ApacheFailed(said[-4000:])
            time.sleep(0.05)

    def write_properties(self) -> Path:
        """Write the properties file of the node; its contents stay the same once the ports are known."""
        broker = f"{self._broker_listener}://127.0.0.1:{self.port}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"{broker},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "log.dirs": str(self.data_dir / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._overrides,
        }
        return self._write("server.properties", "".join(f"{k}={v}\n" for k, v in properties.items()))

    def _write(self, name: str, text: str) -> Path:
        path = self.data_dir / name
        path.write_text(text)
        return path


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
