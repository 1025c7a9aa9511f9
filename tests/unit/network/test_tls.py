"""The TLS layer over real sockets, on the loops that nodes and clients use."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from moldau.network.connection import Connection
from moldau.network.handshakes import Handshakes
from moldau.network.responses import Parts, Response
from moldau.network.tls import TlsLayer
from moldau.security.tls.authority import Authority, IssuedCertificate

HOST = "127.0.0.1"
Test = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("Network test CA")


@pytest.fixture(scope="module")
def issued(authority: Authority) -> IssuedCertificate:
    return authority.issue("server", (HOST, "localhost"))


@pytest.fixture(scope="module")
def server_side(issued: IssuedCertificate, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.write_pem(tmp_path_factory.mktemp("tls") / "server.pem"))
    return context


@pytest.fixture(scope="module")
def client_side(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.certificate_pem)


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Test], None]:
    def run_test(test: Test) -> None:
        async def limited() -> None:
            async with asyncio.timeout(30):
                await test()

        (uvloop.run if request.param == "uvloop" else asyncio.run)(limited())

    return run_test


class Peer(asyncio.BufferedProtocol):
    """Collects what it receives, in a buffer of odd size; an `echo` sends it back."""

    def __init__(self, *, echo: bool = False) -> None:
        self.received = bytearray()
        self.transport: asyncio.Transport | None = None
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.arrived = asyncio.Event()
        self.paused = False
        self.pauses = 0
        #: Paused after each piece, for a millisecond.
        self.pauses_reading_of: asyncio.Transport | None = None
        self._echo = echo
        self._buffer = bytearray(50_001)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        self.received += data
        self.arrived.set()
        if self.pauses_reading_of is not None:
            self.pauses_reading_of.pause_reading()
            asyncio.get_running_loop().call_later(0.001, self.pauses_reading_of.resume_reading)
        if self._echo and self.transport is not None:
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.paused = True
        self.pauses += 1

    def resume_writing(self) -> None:
        self.paused = False

    async def has(self, size: int) -> None:
        while len(self.received) < size:
            self.arrived.clear()
            await self.arrived.wait()


class Served:
    """A listening TLS server and the peers of its clients."""

    def __init__(self, context: ssl.SSLContext, *, timeout: float = 30, echo: bool = False) -> None:
        self.handshakes = Handshakes(max_in_progress=5)
        self.peers: list[Peer] = []
        self._context = context
        self._timeout = timeout
        self._echo = echo

    def layer(self) -> TlsLayer:
        self.peers.append(Peer(echo=self._echo))
        return TlsLayer(
            self.peers[-1],
            self._context,
            server_side=True,
            handshake_timeout=self._timeout,
            loop=asyncio.get_running_loop(),
            handshakes=self.handshakes,
        )


@asynccontextmanager
async def serving(served: Served) -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(served.layer, HOST, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for peer in served.peers:
            if peer.transport is not None and not peer.lost.done():
                peer.transport.abort()


async def connect(context: ssl.SSLContext, port: int, *, host: str = HOST) -> tuple[Peer, TlsLayer]:
    loop = asyncio.get_running_loop()
    peer, secured = Peer(), loop.create_future()
    layer = TlsLayer(
        peer,
        context,
        server_side=False,
        server_hostname=host,
        handshake_timeout=10,
        loop=loop,
        on_handshake=secured.set_result,
    )
    await loop.create_connection(lambda: layer, HOST, port)
    await asyncio.wait((secured, peer.lost), return_when=asyncio.FIRST_COMPLETED)
    if peer.lost.done():
        error = peer.lost.result()
        raise error if error is not None else ConnectionError("closed")
    return peer, layer


def test_data_of_all_sizes_arrives(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        served = Served(server_side, echo=True)
        async with serving(served) as port:
            peer, layer = await connect(client_side, port)
            randomness, sent = random.Random(14), bytearray()
            for _ in range(40):
                parts = [randomness.randbytes(randomness.choice((0, 1, 4, 100, 20_000))) for _ in range(9)]
                sent += b"".join(parts)
                layer.writelines([memoryview(part) for part in parts])
            large = randomness.randbytes(9_000_001)
            layer.writelines([b"head", memoryview(large), b"tail"])
            sent += b"head" + large + b"tail"
            await peer.has(len(sent))
            assert peer.received == served.peers[0].received == sent
            layer.close()
            assert await peer.lost is None
            assert await served.peers[0].lost is None

    run(test)


def test_writing_pauses_while_the_peer_does_not_read(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            peer, layer = await connect(client_side, port)
            layer.pause_reading()
            [server] = served.peers
            assert server.transport is not None
            server.transport.set_write_buffer_limits(high=100_000)
            total = 40_000_000
            server.transport.writelines([memoryview(bytes(total))])
            while not server.paused:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert server.paused
            assert server.transport.get_write_buffer_size() > total // 2
            layer.resume_reading()
            await peer.has(total)
            while server.paused:
                await asyncio.sleep(0.001)
            assert server.transport.get_write_buffer_size() == 0
            assert server.pauses == 1

    run(test)


def test_nothing_is_lost_while_the_receiver_pauses(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    """The receiver pauses in the middle of what arrived at once, and two layers share the receive buffer."""

    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            pairs = [await connect(client_side, port) for _ in range(2)]
            for peer, layer in pairs:
                peer.pauses_reading_of = layer
            sent = [random.Random(number).randbytes(3_000_003) for number in range(2)]
            for server, data in zip(served.peers, sent, strict=True):
                assert server.transport is not None
                server.transport.write(data)
            for (peer, _), data in zip(pairs, sent, strict=True):
                await peer.has(len(data))
                assert peer.received == data

    run(test)


def test_close_sends_what_waits(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            peer, layer = await connect(client_side, port)
            [server] = served.peers
            layer.write(b"the handshake is complete on both sides")
            await server.has(1)
            assert server.transport is not None
            server.transport.writelines([bytes(20_000_000)])
            server.transport.close()
            await peer.has(20_000_000)
            assert await peer.lost is None
            assert await server.lost is None

    run(test)


def test_a_handshake_has_a_deadline(
    run: Callable[[Test], None], server_side: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        served = Served(server_side, timeout=0.1)
        async with serving(served) as port:
            reader, writer = await asyncio.open_connection(HOST, port)
            assert await reader.read() == b""
            assert isinstance(await served.peers[0].lost, ssl.SSLError)
            writer.close()

    with caplog.at_level(logging.INFO):
        run(test)
    assert "not complete within 0.1 s" in caplog.text


def test_a_silent_connection_has_no_session(run: Callable[[Test], None], server_side: ssl.SSLContext) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            sockets = [await asyncio.open_connection(HOST, port) for _ in range(20)]
            while len(served.peers) < 20:
                await asyncio.sleep(0.001)
            assert served.handshakes.in_progress == 0
            assert all(
                peer.transport and not peer.transport.get_extra_info("ssl_object") for peer in served.peers
            )
            for _, writer in sockets:
                writer.close()

    run(test)


def test_handshakes_in_progress_are_bounded(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            begun = []
            for _ in range(20):
                _, writer = await asyncio.open_connection(HOST, port)
                writer.write(bytes.fromhex("160301"))
                begun.append(writer)
            while sum(peer.lost.done() for peer in served.peers) < 15:
                await asyncio.sleep(0.001)
            assert served.handshakes.in_progress == 5
            await connect(client_side, port)
            for writer in begun:
                writer.close()

    run(test)


def test_plain_text_is_refused_with_a_reason(
    run: Callable[[Test], None], server_side: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(bytes.fromhex("0000000a0012000000000007ffff"))
            assert await reader.read() == b""
            writer.close()

    with caplog.at_level(logging.INFO):
        run(test)
    assert "sent plain text to a listener with TLS" in caplog.text


def test_an_unknown_authority_is_refused(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            strange = ssl.create_default_context(cadata=Authority.create("Other").certificate_pem)
            with pytest.raises(ssl.SSLCertVerificationError):
                await connect(strange, port)
            with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
                await connect(client_side, port, host="example.com")
            for peer in list(served.peers):
                assert isinstance(await peer.lost, ssl.SSLError)
            await connect(client_side, port)

    run(test)


def test_a_server_without_tls_is_named(run: Callable[[Test], None], client_side: ssl.SSLContext) -> None:
    async def test() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n")
            writer.close()

        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10_000)
            writer.close()

        for behaviour, reason in ((answer, "WRONG_VERSION"), (hang_up, "closed the connection")):
            server = await asyncio.start_server(behaviour, HOST, 0)
            with pytest.raises(ssl.SSLError, match=reason):
                await connect(client_side, server.sockets[0].getsockname()[1])
            server.close()

    run(test)


def client_hello(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def test_damaged_records_close_only_their_connection(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    """Random bytes and damaged handshakes never raise an exception in the loop."""

    async def test() -> None:
        failures: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        served = Served(server_side, timeout=0.5)
        served.handshakes = Handshakes()
        async with serving(served) as port:
            honest, layer = await connect(client_side, port)
            randomness, hello = random.Random(14), client_hello(client_side)
            for number in range(150):
                data = bytearray(hello if number % 2 else b"\x16" + randomness.randbytes(400))
                for _ in range(randomness.randrange(1, 6)):
                    data[randomness.randrange(1, len(data))] = randomness.randrange(256)
                _, writer = await asyncio.open_connection(HOST, port)
                writer.write(bytes(data) + randomness.randbytes(randomness.randrange(3000)))
                writer.close()
            await asyncio.gather(*(peer.lost for peer in served.peers[1:]))
            layer.write(b"still here")
            await served.peers[0].has(10)
        assert failures == []
        assert not honest.lost.done()

    run(test)


def test_damage_after_the_handshake_closes_the_connection(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        served = Served(server_side)
        async with serving(served) as port:
            peer, _ = await connect(client_side, port)
            below = peer.transport
            assert isinstance(below, TlsLayer)
            below._transport.write(bytes.fromhex("1703030020") + bytes(32))  # type: ignore[union-attr]
            assert isinstance(await served.peers[0].lost, ssl.SSLError)
            assert served.peers[0].received == b""
            assert isinstance(await peer.lost, ssl.SSLError)

    run(test)


def test_the_peer_may_leave_at_any_moment(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        failures: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        served = Served(server_side, echo=True)
        async with serving(served) as port:
            hello = client_hello(client_side)
            for size in range(0, len(hello) + 1, 37):
                plain = socket.create_connection((HOST, port))
                plain.sendall(hello[:size])
                plain.close()
            for _ in range(10):
                _, layer = await connect(client_side, port)
                layer.writelines([bytes(3_000_000)])
                await asyncio.sleep(0)
                layer.abort()
                layer.write(b"late")
                layer.close()
            await asyncio.gather(*(peer.lost for peer in served.peers))
        assert served.handshakes.in_progress == 0
        assert failures == []

    run(test)


class RefusesLogins:
    """Answers the first frame and closes the connection after it, as for a failed login."""

    def dispatch(self, connection: Connection, frame: memoryview) -> Response:
        return Response(pending=self._refusal(), closes=lambda: True)

    async def _refusal(self) -> Parts:
        return [b"\0\0\0\2no"]

    def disconnected(self, connection: Connection) -> None:
        return None


def test_data_after_a_refused_login_is_not_read(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()

        def accepted() -> TlsLayer:
            connection = Connection(RefusesLogins(), 100_000, loop, lambda _: True, lambda _: None)
            return TlsLayer(connection, server_side, server_side=True, handshake_timeout=10, loop=loop)

        server = await loop.create_server(accepted, HOST, 0)
        peer, layer = await connect(client_side, server.sockets[0].getsockname()[1])
        layer.write(b"\0\0\0\2ok")
        await peer.has(6)
        # More than the buffer of the connection holds, in frames that are never dispatched.
        layer.write(b"\0\0\0\2ok" * 20_000)
        await peer.lost
        server.close()

    run(test)


class Full(Peer):
    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(b"")


def test_a_protocol_without_a_buffer_is_disconnected(
    run: Callable[[Test], None], server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def test() -> None:
        loop, full = asyncio.get_running_loop(), Full()
        server = await loop.create_server(
            lambda: TlsLayer(full, server_side, server_side=True, handshake_timeout=10, loop=loop), HOST, 0
        )
        peer, layer = await connect(client_side, server.sockets[0].getsockname()[1])
        layer.write(b"data")
        await peer.lost
        assert isinstance(await full.lost, BufferError)
        server.close()

    run(test)
