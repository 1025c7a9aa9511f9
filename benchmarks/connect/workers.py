"""The workers under test, each as a process with its REST API, CPU time and memory.

All read the same properties. Kafka Connect runs with the JVM options of `connect-distributed.sh`. Its JDBC
sink is Debezium's: Confluent's, whose settings ours has, is not on Maven Central.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import cpu_seconds, unshared_megabytes
from moldau.local.ports import ReservedPorts
from tests.harness.apache.node import java_command
from tests.harness.connect import write_properties
from tests.harness.rest_proxy import Api

_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
#: The JVM options of `connect-distributed.sh`.
_JVM = ("-server", "-Xms256m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_HEAP = "2g"
_START_SECONDS = 120.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_COMMON = {
    "key.converter": _JSON,
    "value.converter": _JSON,
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000",
    # As many records a poll as Confluent's JDBC sink writes at once.
    "consumer.max.poll.records": "3000",
}
OURS_JDBC = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "connection.user": "tests",
    "connection.password": "secret",
    "insert.mode": "upsert",
    "pk.mode": "record_key",
    "auto.create": "true",
    "batch.size": "3000",
}
DEBEZIUM_JDBC = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "connection.username": "tests",
    "connection.password": "secret",
    "insert.mode": "upsert",
    "primary.key.mode": "record_key",
    "schema.evolution": "basic",
    "batch.size": "3000",
}


@dataclass(frozen=True, slots=True)
class Worker:
    """`command` lacks the properties file; `jdbc` has the settings of the JDBC sink."""

    name: str
    command: Sequence[str]
    jdbc: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def running(self, folder: Path, bootstrap: str, group: str) -> Iterator[Running]:
        """Start a worker with topics of its own; wait until it answers requests; end it with the context."""
        ports = ReservedPorts("127.0.0.1")
        port = ports.choose()
        ports.release()
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            **{f"{name}.storage.topic": f"{group}-{name}" for name in ("config", "offset", "status")},
            "listeners": f"http://127.0.0.1:{port}",
            **_COMMON,
            **self.settings,
        }
        file = write_properties(folder / f"{group}.properties", properties)
        begin = time.monotonic()
        with (folder / f"{group}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self.command, str(file)], stdout=log, stderr=log, cwd=folder, start_new_session=True
            )
        running = Running(self, process, Api(port), folder / f"{group}.log", begin)
        try:
            running.wait_for_api()
            yield running
        finally:
            _end(process)


@dataclass(slots=True)
class Running:
    worker: Worker
    process: subprocess.Popen[bytes]
    api: Api
    log: Path
    #: When the process was started.
    begin: float
    ready_seconds: float = 0.0

    def wait_for_api(self) -> None:
        while not self._answers():
            self.check(self.begin + _START_SECONDS)
            time.sleep(0.02)
        self.ready_seconds = time.monotonic() - self.begin

    def _answers(self) -> bool:
        try:
            return self.api.raw("GET", "/connectors")[0] == 200
        except OSError:
            return False

    def check(self, deadline: float) -> None:
        """Exit with the end of the worker's log if it has exited, or the deadline has passed."""
        if self.process.poll() is not None or time.monotonic() > deadline:
            log = self.log.read_text(errors="replace")[-3000:]
            sys.exit(f"{self.worker.name} does not run, or not fast enough: {log}")

    def check_tasks(self) -> None:
        """Exit with the states of all connectors if one has failed."""
        states = self.api.raw("GET", "/connectors?expand=status")[1].decode()
        if '"FAILED"' in states:
            sys.exit(f"{self.worker.name}: {states}")

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def memory(self) -> float:
        return unshared_megabytes(self.process.pid)

    @contextmanager
    def connector(self, name: str, config: Mapping[str, str]) -> Iterator[None]:
        """Create a connector, and delete it with the context."""
        deadline = time.monotonic() + 30
        while (answer := self.api("PUT", f"/connectors/{name}/config", dict(config))).status == 409:
            self.check(deadline)
            time.sleep(0.1)
        if answer.status not in (200, 201):
            sys.exit(f"{self.worker.name} refuses {name}: {answer.body}")
        try:
            yield
        finally:
            self.api("DELETE", f"/connectors/{name}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ours() -> list[Worker]:
    command = (sys.executable, "-m", "moldau", "connect-distributed")
    return [
        Worker("Moldau, threads", command, OURS_JDBC, {"tasks.host": "threads"}),
        Worker("Moldau, Spark", command, OURS_JDBC, {"tasks.host": "spark"}),
    ]


def kafka_connect(libs: Path, plugins: Path) -> Worker:
    """Return Kafka Connect's worker; the folder `plugins` has Debezium's JDBC sink."""
    options = (*_JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
    command = java_command(libs, _MAIN, heap=_HEAP, options=options)
    settings = {"plugin.path": str(plugins.parent), "plugin.discovery": "hybrid_warn"}
    return Worker("Kafka Connect", command, DEBEZIUM_JDBC, settings)
