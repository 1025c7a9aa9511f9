"""An HTTP proxy in front of an S3 server, whose answers a test replaces: 503, damage, or no answer at all."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moldau.local.ports import ReservedPorts

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class S3Proxy:
    """`failing`: methods that get a 503. `damaged`: bytes of objects are changed. `gone`: nothing answers."""

    def __init__(self, endpoint: str) -> None:
        self.target = endpoint.removeprefix("http://")
        self.failing: frozenset[str] = frozenset()
        self.damaged = False
        self.gone = False
        self.refused = 0
        self.endpoint = ""


@contextmanager
def s3_proxy(endpoint: str) -> Iterator[S3Proxy]:
    proxy = S3Proxy(endpoint)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if proxy.gone:
                self.close_connection = True
                proxy.refused += 1
                return
            if self.command in proxy.failing:
                proxy.refused += 1
                self._answer(503, [("Content-Type", "application/xml")], _SLOW_DOWN)
                return
            connection = http.client.HTTPConnection(proxy.target, timeout=30)
            headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            data = response.read()
            if proxy.damaged and self.command == "GET" and response.status in (200, 206) and data:
                middle = len(data) // 2
                data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
            length = response.getheader("Content-Length") if self.command == "HEAD" else None
            self._answer(response.status, response.getheaders(), data, length)
            connection.close()

        def _answer(
            self, status: int, headers: list[tuple[str, str]], data: bytes, length: str | None = None
        ) -> None:
            self.send_response(status)
            for name, text in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, text)
            self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

        def log_message(self, *_: Any) -> None:
            return None

    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    proxy.endpoint = f"http://127.0.0.1:{port}"
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
        ports.release()
