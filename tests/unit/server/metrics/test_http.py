"""The HTTP server of the metrics endpoint, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from moldau.base.pool import InlinePool
from moldau.local.ports import ReservedPorts
from moldau.server.metrics.http import HttpEndpoint, Reply

HOST = "127.0.0.1"
#: More than the kernel buffers of a connection.
LARGE = b"x" * (32 * 1024 * 1024)
DEADLINE_S = 20.0


async def large(headers: Mapping[str, str]) -> Reply:
    return Reply(200, "text/plain", LARGE)


async def small(headers: Mapping[str, str]) -> Reply:
    return Reply(200, "text/plain", b"small\n")


@asynccontextmanager
async def endpoint(timeout_s: float) -> AsyncIterator[int]:
    """Serve `/large` and `/small`; yield the port."""
    ports = ReservedPorts(HOST)
    port = ports.choose()
    ports.release()
    served = HttpEndpoint({"/large": large, "/small": small}, InlinePool(), timeout_s)
    await served.open(HOST, port)
    try:
        yield port
    finally:
        await served.close()


async def request(
    port: int, path: str, headers: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode())
    await writer.drain()
    return reader, writer


async def until_served() -> None:
    """Wait until no connection has a task in the server."""
    async with asyncio.timeout(DEADLINE_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.02)


def test_the_response_is_dropped_if_the_client_does_not_read_it() -> None:
    async def received() -> int:
        async with endpoint(timeout_s=0.3) as port:
            reader, writer = await request(port, "/large")
            await reader.readexactly(1)
            await until_served()
            count = 0
            try:
                while part := await asyncio.wait_for(reader.read(1 << 20), DEADLINE_S):
                    count += len(part)
            except ConnectionError:
                pass
            writer.transport.abort()
            return count

    assert asyncio.run(received()) < len(LARGE)


def test_a_response_is_complete_when_the_connection_is_closed_after_it() -> None:
    async def received() -> bytes:
        async with endpoint(timeout_s=DEADLINE_S) as port:
            reader, writer = await request(port, "/large", "Connection: close\r\n")
            content = await asyncio.wait_for(reader.read(-1), DEADLINE_S)
            writer.close()
            return content

    assert asyncio.run(received()).endswith(b"\r\n\r\n" + LARGE)
