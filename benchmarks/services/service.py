"""A service as a process of its own: the time to its first response, its memory and its CPU time."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from confluent_kafka import Producer

from benchmarks.processes import cpu_seconds, memory_megabytes
from benchmarks.services import wrk
from benchmarks.workloads import REQUESTS, Figures
from moldau.local.ports import ReservedPorts

_START_SECONDS = 60.0
_STOP_SECONDS = 20
#: Requests of a load have other numbers than those of its warm-up.
_AFTER_WARM_UP = 1_000_000
CPU_PER_REQUEST = "CPU ms per request"
P99 = "p99, ms"


class Service:
    """`moldau NAME --bootstrap-server …`, on a free port; ready when `path` is answered."""

    def __init__(self, name: str, bootstrap: str, path: str, more: Sequence[str] = ()) -> None:
        ports = ReservedPorts("127.0.0.1")
        self.port = ports.choose()
        ports.release()
        self.name = name
        self.url = f"http://127.0.0.1:{self.port}"
        command = [
            sys.executable,
            "-m",
            "moldau",
            name,
            "--bootstrap-server",
            bootstrap,
            "--port",
            str(self.port),
        ]
        begin = time.monotonic()
        self._process = subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL)
        self._await(path)
        self.start_seconds = time.monotonic() - begin

    def _await(self, path: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.ask("GET", path)
            except OSError:
                time.sleep(0.005)
            else:
                return
        self._process.kill()
        sys.exit(f"moldau {self.name} did not answer {path}")

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_STOP_SECONDS)

    @property
    def megabytes(self) -> float:
        return memory_megabytes(self._process.pid)

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> bytes:
        """Send one request and return the body of its response, whose status must be below 300."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            sys.exit(f"{method} {path}: {response.status} {answer.decode(errors='replace')}")
        return answer

    def under_load(
        self, name: str, requests: wrk.Requests, seconds: int, connections: int = wrk.CONNECTIONS
    ) -> Figures:
        """Return requests per second, latency and CPU time of a load."""
        wrk.run(self.url, requests, 1, connections)
        before = cpu_seconds(self._process.pid)
        load = wrk.run(self.url, requests, seconds, connections, first=_AFTER_WARM_UP)
        spent = cpu_seconds(self._process.pid) - before
        return {
            f"{name}: {REQUESTS}": load.per_second,
            f"{name}: {CPU_PER_REQUEST}": spent / load.count * 1000,
            f"{name}: {P99}": load.p99_ms,
        }


def fill(bootstrap: str, topic: str, records: Iterable[tuple[str | None, str]]) -> None:
    """Produce records of a key and a value."""
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    producer = Producer(settings)
    for key, value in records:
        producer.produce(topic, value, key)
    producer.flush()
