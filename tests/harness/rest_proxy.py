"""The commands `moldau rest` and `moldau registry` as processes, and a small HTTP client for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple

from moldau.local.ports import ReservedPorts

V2 = "application/vnd.kafka.v2+json"


def embedded(format: str) -> str:
    """Return the media type of an embedded format of v2."""
    return f"application/vnd.kafka.{format}.v2+json"


class Answer(NamedTuple):
    status: int
    #: Parsed JSON; None if it is empty.
    body: Any
    headers: Mapping[str, str]

    @property
    def error(self) -> tuple[int, int]:
        """The status and the error code, 0 without one."""
        return self.status, self.body.get("error_code", 0) if isinstance(self.body, dict) else 0


class Api:
    """Sends requests to a service; a connection for each."""

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.headers = dict(headers or {})

    def open(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Send a request and return the response before its body is read."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {**self.headers, **(headers or {})})
        return connection, connection.getresponse()

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        connection, response = self.open(method, path, body, headers)
        try:
            return response.status, response.read(), dict(response.getheaders())
        finally:
            connection.close()

    def __call__(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", accept: str = ""
    ) -> Answer:
        """Send JSON and return the answer; `body` may be bytes, which are sent as they are."""
        headers = {"Content-Type": kind} if body is not None else {}
        if accept:
            headers["Accept"] = accept
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        status, text, received = self.raw(method, path, data, headers)
        lowered = {name.lower(): value for name, value in received.items()}
        return Answer(status, json.loads(text) if text else None, lowered)


@contextmanager
def service(name: str, bootstrap: str, *arguments: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run `moldau NAME`; return its port and process."""
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    command = [sys.executable, "-m", "moldau", name, "--bootstrap-server", bootstrap, "--port", str(port)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "is ready" in process.stdout.readline()
        yield port, process
        assert process.poll() in (None, 0), "the service has ended"
    finally:
        process.terminate()
        code = process.wait(30)
        process.stdout.close()
    assert code == 0


@contextmanager
def rest_proxy(bootstrap: str, *arguments: str, **settings: str | int) -> Iterator[Api]:
    """Run a proxy; settings by Confluent's names, with underscores for dots."""
    chosen = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    with service("rest", bootstrap, *arguments, *(each for pair in chosen for each in ("--set", pair))) as (
        port,
        _,
    ):
        yield Api(port)
