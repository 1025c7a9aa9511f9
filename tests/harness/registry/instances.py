"""Processes of `moldau registry`: started on reserved ports, killed, paused, stopped, asked over HTTP."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

from moldau.client.admin.client import AsyncAdminClient
from moldau.client.wire.coordinators import GROUP, ask_coordinator
from moldau.local.ports import ReservedPorts
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

HOST = "127.0.0.1"
_START = "from moldau.cli.moldau.services.registry import start_main; raise SystemExit(start_main())"
CONTENT_TYPE = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Instance:
    """A process, which can be started again on its port after it has ended.

    `settings` are Confluent's properties; `scheme` is that of its only listener.
    """

    def __init__(
        self,
        bootstrap: str,
        port: int,
        settings: Mapping[str, str] | None = None,
        *,
        scheme: str = "http",
        tls: ssl.SSLContext | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        self.url = f"{scheme}://{HOST}:{port}"
        self._tls = tls
        self._folder = tempfile.TemporaryDirectory(prefix="registry-")
        self._log, file = Path(self._folder.name, "log"), Path(self._folder.name, "registry.properties")
        properties = {"kafkastore.bootstrap.servers": bootstrap, "listeners": self.url, **(settings or {})}
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._command = [sys.executable, "-c", _START, str(file), "--verbose"]
        self._environment = {**os.environ, **(environment or {})}
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        with self._log.open("a") as log:
            return subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )

    def wait_ready(self) -> Instance:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "is ready" in line, self.log
        return self

    @property
    def log(self) -> str:
        """Everything the process has logged."""
        return self._log.read_text()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Answer:
        """Send one request over a connection of its own."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = self.connect(timeout)
        try:
            connection.request(method, path, data, {**CONTENT_TYPE, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.read(), dict(response.getheaders()))
        finally:
            connection.close()

    def connect(self, timeout: float = 30.0) -> HTTPConnection:
        if self._tls is not None:
            return HTTPSConnection(HOST, self.port, timeout=timeout, context=self._tls)
        return HTTPConnection(HOST, self.port, timeout=timeout)

    def register(self, subject: str, schema: object, **fields: Any) -> Answer:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.ask("POST", f"/subjects/{subject}/versions", {"schema": text, **fields})

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self, timeout: float = 30.0) -> int:
        """Wait until the process has ended."""
        return self.process.wait(timeout)

    def stop(self) -> None:
        """Stop the process, which must succeed."""
        self.process.terminate()
        assert self.exit_code() == 0, self.log
        if self.process.stdout is not None:
            self.process.stdout.close()

    def start_again(self) -> None:
        """Start a process that was stopped, and wait until it is ready."""
        self.process = self._started()
        self.wait_ready()

    def close(self) -> None:
        """Stop the process; it leaves the group, so that the next one need not wait for its session."""
        try:
            self.process.terminate()
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._folder.cleanup()


@contextmanager
def running_registry(
    bootstrap: str, port: int | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Instance]:
    """Start one instance, on a port that is known before, and wait until it is ready."""
    instance = Instance(bootstrap, port or choose_port(), settings)
    try:
        yield instance.wait_ready()
    finally:
        instance.close()


def choose_port() -> int:
    with ports(1) as [port]:
        return port


@contextmanager
def instances(
    bootstrap: str, count: int = 1, settings: Mapping[str, str] | None = None, **options: Any
) -> Iterator[list[Instance]]:
    """Start instances at once and wait until all are ready."""
    with ports(count) as reserved:
        started = [Instance(bootstrap, port, settings, **options) for port in reserved]
        try:
            for each in started:
                each.wait_ready()
            yield started
        finally:
            for each in started:
                each.close()


@contextmanager
def ports(count: int) -> Iterator[list[int]]:
    reserved = ReservedPorts(HOST)
    try:
        yield [reserved.choose() for _ in range(count)]
    finally:
        reserved.release()


class Described(NamedTuple):
    """The group of the instances as the coordinator knows it."""

    state: str
    members: int
    #: The URLs that the members have as the leader; one in a stable group.
    leaders: frozenset[str]


async def describe_group(bootstrap: str, group: str = "schema-registry") -> Described:
    def read(answer: DescribeGroupsResponse) -> Described:
        found = answer.groups[0]
        assignments = [json.loads(bytes(each.member_assignment) or b"{}") for each in found.members]
        identities = [each["master_identity"] for each in assignments if each.get("master_identity")]
        urls = frozenset(f"{each['scheme']}://{each['host']}:{each['port']}" for each in identities)
        return Described(found.group_state, len(found.members), urls)

    async with AsyncAdminClient(bootstrap) as admin:
        request = DescribeGroupsRequest(groups=[group])
        return await ask_coordinator(admin.cluster, GROUP, group, request, read)


#: What a request may raise while an instance dies.
DISCONNECTED = (OSError, HTTPException)
