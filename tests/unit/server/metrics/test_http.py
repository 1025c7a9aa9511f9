"""The HTTP server of the metrics endpoint, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from moldau.base.pool import InlinePool
from moldau.local.ports import ReservedPorts
from moldau.server.metrics.http import MAX_CONNECTIONS, HttpEndpoint, Reply, Route

HOST = "127.0.0.1"
#: More than the kernel buffers of a connection.
LARGE = b"x" * (32 * 1024 * 1024)
#: More than those of a connection whose client has a small buffer.
MEDIUM = b"x" * (4 * 1024 * 1024)
DEADLINE_S = 20.0
#: The receive buffer of clients that hold connections, so that the kernel does not take their responses.
SMALL_BUFFER = 4096


async def large(headers: Mapping[str, str]) -> Reply:
    return Reply(200, "text/plain", LARGE)


async def medium(headers: Mapping[str, str]) -> Reply:
    return Reply(200, "text/plain", MEDIUM)


async def small(headers: Mapping[str, str]) -> Reply:
    return Reply(200, "text/plain", b"small\n")


@asynccontextmanager
async def endpoint(timeout_s: float, more: Mapping[str, Route] | None = None) -> AsyncIterator[int]:
    """Serve `/large`, `/medium`, `/small` and `more`; yield the port."""
    ports = ReservedPorts(HOST)
    port = ports.choose()
    ports.release()
    routes = {"/large": large, "/medium": medium, "/small": small, **(more or {})}
    served = HttpEndpoint(routes, InlinePool(), timeout_s)
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


async def hold(port: int, request_text: str = "") -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open as many connections as the server keeps, and send each of them a request, or nothing."""
    held = []
    for _ in range(MAX_CONNECTIONS):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, (HOST, port))
        reader, writer = await asyncio.open_connection(sock=client)
        writer.write(request_text.encode())
        held.append((reader, writer))
    return held


async def answer_of(port: int, path: str) -> bytes:
    reader, writer = await request(port, path, "Connection: close\r\n")
    try:
        return await asyncio.wait_for(reader.read(-1), DEADLINE_S)
    finally:
        writer.transport.abort()


async def closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the server has closed a connection."""
    try:
        while await asyncio.wait_for(reader.read(1 << 20), DEADLINE_S):
            pass
    except ConnectionError:
        pass
    return True


def test_a_probe_is_answered_while_idle_connections_are_held(caplog: pytest.LogCaptureFixture) -> None:
    async def answers() -> tuple[list[bytes], bool]:
        async with endpoint(timeout_s=DEADLINE_S) as port:
            held = await hold(port)
            found = [await answer_of(port, "/small") for _ in range(3)]
            was_closed = await closed(held[0][0])
            still_served = held[-1]
            still_served[1].write(b"GET /small HTTP/1.1\r\n\r\n")
            found.append(await asyncio.wait_for(still_served[0].readuntil(b"small\n"), DEADLINE_S))
            for _, writer in held:
                writer.transport.abort()
            return found, was_closed

    found, was_closed = asyncio.run(answers())
    assert was_closed
    assert caplog.records == []
    assert [each.startswith(b"HTTP/1.1 200 ") for each in found] == [True] * 4


def test_a_probe_is_answered_while_no_client_reads_its_response() -> None:
    async def answered() -> bytes:
        async with endpoint(timeout_s=DEADLINE_S) as port:
            held = await hold(port, "GET /medium HTTP/1.1\r\n\r\n")
            for reader, _ in held:
                await asyncio.wait_for(reader.readexactly(1), DEADLINE_S)
            found = await answer_of(port, "/small")
            for _, writer in held:
                writer.transport.abort()
            return found

    assert asyncio.run(answered()).endswith(b"small\n")


def test_a_request_that_is_being_served_outlives_idle_connections() -> None:
    async def answered() -> bytes:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(headers: Mapping[str, str]) -> Reply:
            begun.set()
            await may_end.wait()
            return Reply(200, "text/plain", b"slow\n")

        async with endpoint(timeout_s=DEADLINE_S, more={"/slow": slow}) as port:
            reader, writer = await request(port, "/slow", "Connection: close\r\n")
            await asyncio.wait_for(begun.wait(), DEADLINE_S)
            held = await hold(port)
            await closed(held[0][0])
            may_end.set()
            content = await asyncio.wait_for(reader.read(-1), DEADLINE_S)
            for _, each in [(reader, writer), *held]:
                each.transport.abort()
            return content

    assert asyncio.run(answered()).endswith(b"slow\n")
