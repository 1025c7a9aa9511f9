"""Forwarding of pushed metrics to an endpoint that does not speak HTTP."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Iterator

import pytest

from moldau.base.pool import InlinePool
from moldau.local.ports import ReservedPorts
from moldau.metrics.telemetry.protobuf import nested
from moldau.server.metrics.forwarding import OtlpForwarder
from moldau.server.tasks import BackgroundTasks

HOST = "127.0.0.1"


class NoHttp(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.request.recv(65536)
        self.wfile.write(b"hello\r\n\r\n")


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that answers every request with a line that is not a status line."""
    ports = ReservedPorts(HOST)
    chosen = ports.choose()
    ports.release()
    with socketserver.TCPServer((HOST, chosen), NoHttp) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield chosen
        server.shutdown()
        thread.join()


def test_payloads_that_are_answered_without_http_are_lost_and_counted(port: int) -> None:
    async def forwarder() -> OtlpForwarder:
        tasks = BackgroundTasks()
        forwarding = OtlpForwarder(f"http://{HOST}:{port}/v1/metrics", InlinePool(), tasks)
        for _ in range(2):
            forwarding.forward(nested(1, b""), {"client_id": "c"})
        async with asyncio.timeout(20):
            while forwarding.forwarded + forwarding.lost < 2:
                await asyncio.sleep(0.01)
        await tasks.close()
        return forwarding

    found = asyncio.run(forwarder())
    assert (found.forwarded, found.lost) == (0, 2)
