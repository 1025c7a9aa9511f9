"""A small HTTP/1.1 server for `GET`: enough for Prometheus and probes.

The services' HTTP server (`moldau.http`) would add 4.6 MB to the memory of every node with metrics; this one
adds nothing. Requests are bounded in size, time and number; a body is not read.

A new connection is always accepted, so that clients that hold connections open cannot starve a probe: at the
limit it replaces the connection that has waited for its client for the longest time.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.network.listener import bound_sockets

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
_MAX_HEAD_BYTES: Final = 16 * 1024
#: How long a client may take to send a request, or to read a response.
_TIMEOUT_S: Final = 30.0
_COMPRESS_FROM_BYTES: Final = 2048
_COMPRESSION_LEVEL: Final = 1
#: The `wbits` of zlib for the gzip format.
_GZIP: Final = 31
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Reply(NamedTuple):
    status: int
    content_type: str
    body: bytes


#: Takes the request's headers, with names in lower case.
Route = Callable[[Mapping[str, str]], Awaitable[Reply]]


class BadRequest(Exception):
    """The request cannot be read; the connection is closed after the response."""


class HttpEndpoint:
    """`open`, then `close`."""

    def __init__(self, routes: Mapping[str, Route], pool: Pool, timeout_s: float = _TIMEOUT_S) -> None:
        self._routes = routes
        self._pool = pool
        self._timeout_s = timeout_s
        self._servers: list[asyncio.Server] = []
        #: Whether a connection waits for its client, which sends a request or reads a response; the one that
        #: has been in its state for the longest time is first.
        self._connections: dict[asyncio.Task[None], bool] = {}

    async def open(self, host: str | None, port: int) -> int:
        """Listen, and return the port; `ListenError` if it is taken."""
        for sock in bound_sockets("of metrics.port", host, port, (0, 0)):
            port = sock.getsockname()[1]
            self._servers.append(await asyncio.start_server(self._serve, sock=sock, limit=_MAX_HEAD_BYTES))
        return port

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is served by a task")
        if len(self._connections) >= MAX_CONNECTIONS:
            self._close_idlest()
        self._connections[task] = True
        # `drain` then waits until the kernel has everything, so that an abort loses nothing of a response.
        writer.transport.set_write_buffer_limits(high=0)
        try:
            while await self._exchange(task, reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            # By `close` or `_close_idlest`. The task has no other caller, and asyncio would log an error.
            pass
        finally:
            self._connections.pop(task, None)
            # Not `close`, which would keep the response until a client that has stopped reading is gone.
            writer.transport.abort()

    def _close_idlest(self) -> None:
        """Close the connection that has waited for its client for the longest time, else the oldest."""
        waiting = (task for task, waits in self._connections.items() if waits)
        task = next(waiting, None) or next(iter(self._connections))
        del self._connections[task]
        task.cancel()

    def _mark(self, task: asyncio.Task[None], *, waits: bool) -> None:
        if task in self._connections:
            del self._connections[task]
            self._connections[task] = waits

    async def _exchange(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Serve one request; return whether the connection is kept."""
        async with asyncio.timeout(self._timeout_s):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, version, headers = _parsed(head)
            except (BadRequest, asyncio.LimitOverrunError) as error:
                reply = Reply(400, "text/plain", f"{error}\n".encode())
                writer.write(_head(reply, keep=False) + reply.body)
                await writer.drain()
                return False
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        keep = keep and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        self._mark(task, waits=False)
        reply = await self._reply(method, path, headers)
        encoding = ""
        if len(reply.body) >= _COMPRESS_FROM_BYTES and "gzip" in headers.get("accept-encoding", ""):
            reply, encoding = reply._replace(body=await self._pool.run(_gzip, reply.body)), "gzip"
        self._mark(task, waits=True)
        async with asyncio.timeout(self._timeout_s):
            writer.write(_head(reply, keep=keep, encoding=encoding))
            if method != "HEAD":
                writer.write(reply.body)
            await writer.drain()
        return keep

    async def _reply(self, method: str, path: str, headers: Mapping[str, str]) -> Reply:
        if method not in ("GET", "HEAD"):
            return Reply(405, "text/plain", b"Only GET is served.\n")
        route = self._routes.get(path.partition("?")[0])
        if route is None:
            paths = ", ".join(sorted(self._routes))
            return Reply(404, "text/plain", f"Not found. This server has {paths}.\n".encode())
        try:
            return await route(headers)
        except Exception:  # a bug in a metric must not stop the node
            logger.exception("GET %s failed", path, extra=event("http.failed", method="GET", path=path))
            return Reply(500, "text/plain", b"The server met an unexpected error.\n")


def _parsed(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    try:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, version = first.split(" ")
        headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadRequest("A header has no colon.")
            headers[name.strip().lower()] = value.strip()
    except ValueError:
        raise BadRequest("The request line is invalid.") from None
    return method, path, version, headers


def _head(reply: Reply, *, keep: bool, encoding: str = "") -> bytes:
    lines = [
        f"HTTP/1.1 {reply.status} {_REASONS[reply.status]}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Cache-Control: no-store",
        f"Connection: {'keep-alive' if keep else 'close'}",
    ]
    if encoding:
        lines.append(f"Content-Encoding: {encoding}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, _GZIP)
    return compressor.compress(body) + compressor.flush()
