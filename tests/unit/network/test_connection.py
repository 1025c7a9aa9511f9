"""Connections over real sockets: order, overlap, back-pressure and limits, with a scripted dispatcher."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from moldau.network.connection import CloseConnection, Connection, Dispatcher
from moldau.network.half_open import HalfOpenConnections
from moldau.network.limits import ConnectionLimits
from moldau.network.listener import Listener
from moldau.network.responses import Parts, Response
from moldau.quotas.connections import ConnectionSettings
from moldau.security.principal import KafkaPrincipal


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Scripted:
    """Answers each frame by what its first byte asks for."""

    def __init__(self) -> None:
        self.gates: dict[bytes, asyncio.Event] = {}
        self.seen: list[bytes] = []

    def gate(self, name: bytes) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    def dispatch(self, connection: Connection, frame: memoryview) -> Response:
        data = bytes(frame)
        self.seen.append(data)
        match data[:1]:
            case b"e":
                return Response([framed(data)])
            case b"b":
                return Response([framed(b"x" * 1_000_000)])
            case b"w" | b"o":
                return Response(pending=self._later(data), overlapping=data[:1] == b"o")
            case b"l":
                connection.logged_in(KafkaPrincipal("User", "alice"))
                return Response([framed(data)])
            case b"n":
                return Response()
            case b"m":
                connection.mute(150)
                return Response([framed(data)])
        raise CloseConnection("a frame nobody understands")

    async def _later(self, data: bytes) -> Parts:
        await self.gate(data).wait()
        return [framed(data)]

    def disconnected(self, connection: Connection) -> None:
        return None


@asynccontextmanager
async def listening(
    dispatcher: Dispatcher, limits: ConnectionLimits | None = None
) -> AsyncIterator[tuple[Listener, int]]:
    listener = Listener("PLAINTEXT", limits or ConnectionLimits(), max_frame=100_000)
    port = listener.bind("127.0.0.1", 0)
    await listener.accept(dispatcher)
    try:
        yield listener, port
    finally:
        await listener.close(0.1)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    size = struct.unpack(">i", await asyncio.wait_for(reader.readexactly(4), 5))[0]
    return await asyncio.wait_for(reader.readexactly(size), 5)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)


def test_responses_keep_the_order_of_requests() -> None:
    async def scenario() -> None:
        dispatcher = Scripted()
        async with listening(dispatcher) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"o1") + framed(b"o2") + framed(b"e3"))
            await until(lambda: len(dispatcher.seen) == 3)
            dispatcher.gate(b"o2").set()
            dispatcher.gate(b"o1").set()
            assert [await read_frame(reader) for _ in range(3)] == [b"o1", b"o2", b"e3"]
            writer.close()

    asyncio.run(scenario())


def test_exclusive_request_delays_the_next() -> None:
    async def scenario() -> None:
        dispatcher = Scripted()
        async with listening(dispatcher) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"w1") + framed(b"e2"))
            await until(lambda: len(dispatcher.seen) == 1)
            await asyncio.sleep(0.02)
            assert dispatcher.seen == [b"w1"]
            dispatcher.gate(b"w1").set()
            assert [await read_frame(reader), await read_frame(reader)] == [b"w1", b"e2"]
            writer.close()

    asyncio.run(scenario())


def test_requests_sent_before_disconnecting_are_dispatched() -> None:
    class Noting(Scripted):
        begun: list[bytes]

        async def _later(self, data: bytes) -> Parts:
            self.begun.append(data)
            return await super()._later(data)

    async def scenario() -> None:
        dispatcher = Noting()
        dispatcher.begun = []
        async with listening(dispatcher) as (_, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            for name in (b"w2", b"w3"):
                dispatcher.gate(name).set()
            writer.write(framed(b"w1") + framed(b"w2") + framed(b"n") + framed(b"w3") + framed(b"w4"))
            writer.close()
            await until(lambda: len(dispatcher.begun) == 4)
            assert dispatcher.begun == [b"w1", b"w2", b"w3", b"w4"]
            assert len(dispatcher.seen) == 5
            await until(lambda: len(asyncio.all_tasks()) == 1)

    asyncio.run(scenario())


def test_large_responses_do_not_accumulate_after_a_pending_one() -> None:
    async def scenario() -> None:
        dispatcher = Scripted()
        async with listening(dispatcher) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"o1") + framed(b"b") * 10)
            await until(lambda: len(dispatcher.seen) == 2)
            await asyncio.sleep(0.02)
            assert dispatcher.seen == [b"o1", b"b"]
            dispatcher.gate(b"o1").set()
            assert await read_frame(reader) == b"o1"
            assert [len(await read_frame(reader)) for _ in range(10)] == [1_000_000] * 10
            writer.close()

    asyncio.run(scenario())


class _Recorder(asyncio.Transport):
    """A transport that keeps every write apart."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return None

    def is_closing(self) -> bool:
        return False


def test_small_responses_to_one_read_share_one_write() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        connection = Connection(Scripted(), 100_000, loop, lambda c: True, lambda c: None)
        transport = _Recorder()
        connection.connection_made(transport)
        requests = framed(b"e1") + framed(b"n2") + framed(b"e3") + framed(b"e4")
        connection.get_buffer(-1)[: len(requests)] = requests
        connection.buffer_updated(len(requests))
        assert transport.writes == [framed(b"e1") + framed(b"e3") + framed(b"e4")]

    asyncio.run(scenario())


def test_small_and_large_responses_keep_their_order() -> None:
    async def scenario() -> None:
        async with listening(Scripted()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4_000_000)
            writer.write(framed(b"e1") + framed(b"b2") + framed(b"e3") * 200 + framed(b"b4") + framed(b"e5"))
            sizes = [len(await read_frame(reader)) for _ in range(204)]
            assert sizes == [2, 1_000_000, *[2] * 200, 1_000_000, 2]
            writer.close()

    asyncio.run(scenario())


def test_responses_before_an_invalid_frame_are_sent() -> None:
    async def scenario() -> None:
        async with listening(Scripted()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"e1") + framed(b"e2") + framed(b"?"))
            assert [await read_frame(reader), await read_frame(reader)] == [b"e1", b"e2"]
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    asyncio.run(scenario())


def test_request_without_response_is_not_answered() -> None:
    async def scenario() -> None:
        async with listening(Scripted()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"n1") + framed(b"e2"))
            assert await read_frame(reader) == b"e2"
            writer.close()

    asyncio.run(scenario())


def test_requests_of_a_client_that_does_not_read_are_not_dispatched() -> None:
    async def scenario() -> None:
        dispatcher = Scripted()
        async with listening(dispatcher) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            asked = 200
            writer.write(framed(b"b") * asked)
            seen = -1
            while seen != len(dispatcher.seen):
                seen = len(dispatcher.seen)
                await asyncio.sleep(0.1)
            assert len(dispatcher.seen) < 20
            for _ in range(asked):
                assert len(await read_frame(reader)) == 1_000_000
            assert len(dispatcher.seen) == asked
            writer.close()

    asyncio.run(scenario())


def test_muted_connection_delays_its_next_request() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(Scripted()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"m1") + framed(b"e2"))
            assert await read_frame(reader) == b"m1"
            begin = loop.time()
            assert await read_frame(reader) == b"e2"
            assert loop.time() - begin > 0.1
            writer.close()

    asyncio.run(scenario())


def test_invalid_frame_closes_only_its_own_connection() -> None:
    async def scenario() -> None:
        async with listening(Scripted()) as (_, port):
            for garbage in (framed(b"?"), struct.pack(">i", 2**31 - 1), struct.pack(">i", -5)):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(garbage)
                assert await asyncio.wait_for(reader.read(), 5) == b""
                writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"e1"))
            assert await read_frame(reader) == b"e1"
            writer.close()

    asyncio.run(scenario())


def test_connections_over_the_limit_per_ip_are_closed() -> None:
    async def scenario() -> None:
        async with listening(Scripted(), ConnectionLimits(ConnectionSettings(max_per_ip=1))) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"e1"))
            assert await read_frame(reader) == b"e1"
            second, second_writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                assert await asyncio.wait_for(second.read(), 5) == b""
            except ConnectionResetError:
                pass
            second_writer.close()
            writer.close()

    asyncio.run(scenario())


def test_connection_over_the_limit_is_served_when_another_closes() -> None:
    async def scenario() -> None:
        async with listening(Scripted(), ConnectionLimits(ConnectionSettings(max_connections=1))) as (
            _,
            port,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"e1"))
            assert await read_frame(reader) == b"e1"
            second, second_writer = await asyncio.open_connection("127.0.0.1", port)
            second_writer.write(framed(b"e2"))
            pending = asyncio.ensure_future(read_frame(second))
            await asyncio.sleep(0.05)
            assert not pending.done()
            writer.close()
            assert await pending == b"e2"
            second_writer.close()

    asyncio.run(scenario())


def test_idle_connections_are_closed() -> None:
    async def scenario() -> None:
        limits = ConnectionLimits(max_idle_ms=1000)
        async with listening(Scripted(), limits) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"e1"))
            assert await read_frame(reader) == b"e1"
            limits.close_idle(asyncio.get_running_loop().time() + 0.5)
            assert len(limits.open) == 1
            limits.close_idle(asyncio.get_running_loop().time() + 1.5)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    asyncio.run(scenario())


def test_wildcard_listener_serves_ipv4_and_ipv6() -> None:
    async def scenario() -> None:
        listener = Listener("PLAINTEXT", ConnectionLimits(), max_frame=1000)
        port = listener.bind(None, 0)
        await listener.accept(Scripted())
        hosts = ["127.0.0.1"]
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
            hosts.append("::1")
        except OSError:
            pass
        for host in hosts:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(framed(b"e1"))
            assert await read_frame(reader) == b"e1"
            writer.close()
        await listener.close(0.1)

    asyncio.run(scenario())


def test_changed_quota_ends_a_mute_and_a_closed_connection_keeps_no_timer() -> None:
    async def scenario() -> None:
        limits = ConnectionLimits()
        async with listening(Muting(60_000), limits) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"1") + framed(b"2"))
            assert await read_frame(reader) == b"1"
            (connection,) = limits.open
            assert not connection.idle, "a muted connection is not closed as idle"
            limits.apply({})
            assert await read_frame(reader) == b"2"
            writer.close()
            await until(lambda: not limits.open)
            assert connection.idle
            connection.mute(60_000)
            assert connection.idle

    asyncio.run(scenario())


class Muting:
    """Answers with the request and mutes the connection."""

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def dispatch(self, connection: Connection, frame: memoryview) -> Response:
        connection.mute(self._milliseconds)
        return Response([framed(bytes(frame))])

    def disconnected(self, connection: Connection) -> None:
        pass


def test_connections_that_logged_in_take_no_place_of_those_that_have_not() -> None:
    async def scenario() -> None:
        limits = ConnectionLimits()
        limits.half_open = HalfOpenConnections(max_connections=2)
        listener = Listener("SASL", limits, max_frame=100_000, logs_in=True)
        port = listener.bind("127.0.0.1", 0)
        await listener.accept(Scripted())
        try:
            slow, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"e"))
            await read_frame(slow)
            for _ in range(5):
                reader, known = await asyncio.open_connection("127.0.0.1", port)
                known.write(framed(b"l"))
                await read_frame(reader)
            assert len(limits.half_open) == 1
            writer.write(framed(b"e again"))
            assert await read_frame(slow) == b"e again"
        finally:
            await listener.close(0.1)

    asyncio.run(scenario())
