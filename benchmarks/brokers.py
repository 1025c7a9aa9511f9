"""The brokers under test: both use the same properties file and the same two steps, format and start.

Moldau is started with its own commands, Apache Kafka with the JVM options of its start script and 1 GB of
heap. A broker is ready when it has acknowledged a record sent over a plain socket, so that timers of a client
are not measured.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import memory_megabytes
from moldau.base.errors import ErrorCode
from moldau.local.plan import single_node_properties
from tests.harness.apache.node import free_port, java_command
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import create_topic, produce

#: The JVM options of `kafka-server-start.sh`.
_SERVER_OPTIONS = (
    "-server",
    "-Xms1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.stdout.ref = out
appender.out.type = Console
appender.out.name = out
"""
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_START_SECONDS = 120.0
_FIRST = "first"


@dataclass(frozen=True, slots=True)
class Software:
    """The commands that format a folder and start a node, without the properties file."""

    name: str
    format: Sequence[str]
    start: Sequence[str]


def moldau() -> Software:
    run = "import sys; from moldau.cli.{} import {} as main; sys.exit(main())"
    storage, server = run.format("kafka.storage", "main"), run.format("kafka.server.command", "start_main")
    # Compile once, like the installation of a package does.
    modules = (
        "import moldau.cli.kafka.storage, moldau.cli.kafka.server.command, "
        "moldau.server.run, moldau.server.startup.format, uvloop"
    )
    subprocess.run([sys.executable, "-c", modules], env=_environment(), check=True)
    return Software("moldau", (sys.executable, "-c", storage), (sys.executable, "-c", server))


def apache(libs: Path, folder: Path) -> Software:
    """Return the commands of Apache Kafka; `folder` receives its logging configuration."""
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING)
    options = (f"-Dlog4j2.configurationFile={logging}", *_SERVER_OPTIONS)
    return Software(
        "apache",
        java_command(libs, "kafka.tools.StorageTool"),
        java_command(libs, "kafka.Kafka", heap="1g", options=options),
    )


def _environment() -> dict[str, str]:
    """Return the environment in which Python caches bytecode, as for an installed package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "moldau-bench-bytecode")}


class NodeProcess:
    """A node with its properties and data in one folder, which can be formatted, started and stopped."""

    def __init__(self, software: Software, folder: Path, properties: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = software.name
        self._software = software
        self._log = folder / "node.log"
        self._file = folder / "server.properties"
        self._file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the node is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None

    def format(self, *words: str) -> None:
        command = [*self._software.format, "format", *words, "-t", _CLUSTER_ID, "-c", str(self._file)]
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{self.name} cannot format: {done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start the process; `check` tells whether it still runs."""
        with self._log.open("ab") as log:
            command = [*self._software.start, str(self._file)]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=_environment(), start_new_session=True
            )

    def check(self, begin: float) -> None:
        """Exit with the end of the log if the process has exited, or is not ready long after `begin`."""
        gone = self._process is None or self._process.poll() is not None
        if gone or time.monotonic() > begin + _START_SECONDS:
            sys.exit(f"{self.name} did not start: {self._log.read_text()[-3000:]}")

    def end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None


class Broker:
    """A node in its own folder, which is removed when the context ends; `tls` adds an SSL listener."""

    def __init__(
        self, software: Software, *, tls: bool = False, settings: Mapping[str, str] | None = None
    ) -> None:
        self.name = software.name
        self._software = software
        self._port = free_port()
        self._tls_port = free_port() if tls else None
        self._settings = settings or {}
        #: What clients of the SSL listener need, as settings of librdkafka.
        self.client_settings: dict[str, str] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def tls_bootstrap(self) -> str:
        return f"127.0.0.1:{self._tls_port}"

    @property
    def pid(self) -> int:
        return self._node.pid

    def __enter__(self) -> Broker:
        self._folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        data = str(self._folder / "data")
        properties = single_node_properties("127.0.0.1", self._port, free_port(), data)
        if self._tls_port is not None:
            self._add_tls(properties, self._tls_port)
        self._node = NodeProcess(self._software, self._folder, properties | self._settings)
        return self

    def _add_tls(self, properties: dict[str, str], port: int) -> None:
        from tests.harness.security.certificates import Certificates

        certificates = Certificates(self._folder / "certificates")
        self.client_settings = certificates.librdkafka()
        properties["listeners"] += f",SSL://127.0.0.1:{port}"
        properties["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL"
        properties |= certificates.server_properties()

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def first_start(self) -> float:
        """Format and start the node; return the seconds until the first acknowledged record."""
        begin = time.monotonic()
        self._node.format("--standalone")
        self.start()
        return time.monotonic() - begin

    def start(self, topic: str = _FIRST, partition: int = 0) -> float:
        """Start the node; return the seconds until a partition acknowledges a record."""
        begin = time.monotonic()
        self._node.start()
        while not self._acknowledges(topic, partition):
            self._node.check(begin)
            time.sleep(0.005)
        return time.monotonic() - begin

    def stop(self) -> float:
        """Shut the node down with SIGTERM and return the seconds that took."""
        begin = time.monotonic()
        self._node.end(signal.SIGTERM)
        return time.monotonic() - begin

    def kill(self) -> None:
        self._node.end(signal.SIGKILL)

    def memory(self) -> float:
        return memory_megabytes(self.pid)

    def _acknowledges(self, topic: str, partition: int) -> bool:
        try:
            answer = produce(self.bootstrap, topic, batch(), partition=partition, acks=1)
            if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic == _FIRST:
                create_topic(self.bootstrap, topic)
        except OSError:
            return False
        return bool(answer.error_code == 0)
