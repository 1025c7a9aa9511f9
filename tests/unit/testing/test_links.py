"""Links that are cut behave like a broken cable: late, but nothing lost, reordered or reset."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from moldau.testing.link_control import LinkControl, serve_link_control
from moldau.testing.links import Links

#: Long enough for bytes to cross this machine many times.
A_MOMENT_S = 0.05


class Server:
    """The other node: keeps what it got and says what the test wants."""

    def __init__(self) -> None:
        self.got = b""
        self.ended: list[bool] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while True:
            try:
                data = await reader.read(65_536)
            except ConnectionResetError:
                data = b""
            if not data:
                break
            self.got += data
        self.ended.append(True)
        writer.close()


class Client(asyncio.BufferedProtocol):
    """The node's end."""

    def __init__(self) -> None:
        self.got = b""
        self.lost = False
        self.may_write = True
        self._buffer = bytearray(65_536)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.got += self._buffer[:nbytes]

    def connection_lost(self, exc: Exception | None) -> None:
        assert not self.lost, "told twice"
        self.lost = True

    def pause_writing(self) -> None:
        self.may_write = False

    def resume_writing(self) -> None:
        self.may_write = True


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


Scene = Callable[[Links, Server], Coroutine[Any, Any, None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Callable[[Scene], None]:
    async def with_server(scene: Scene) -> None:
        server = Server()
        async with await server.start():
            await scene(Links(), server)
            for writer in server.writers:
                writer.transport.abort()

    def run(scene: Scene) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(with_server(scene))

    return run


async def connect(links: Links, server: Server) -> Client:
    client = Client()
    await links.open(lambda: client, "127.0.0.1", server.port)
    await until(lambda: server.writers)
    return client


def test_cut_link_holds_both_directions_until_healed(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        client.transport.write(b"1")
        server.writers[0].write(b"a")
        await until(lambda: (server.got, client.got) == (b"1", b"a"))
        links.cut([server.port], [server.port])
        changing = bytearray(b"2")
        client.transport.writelines([changing, memoryview(b"3")])
        changing[:] = b"x"
        server.writers[0].write(b"b")
        await asyncio.sleep(A_MOMENT_S)
        assert (server.got, client.got) == (b"1", b"a")
        client.transport.write(b"4")
        links.cut([], [])
        client.transport.write(b"5")
        await until(lambda: (server.got, client.got) == (b"12345", b"ab"))
        assert not client.lost

    play(scene)


@pytest.mark.parametrize("deaf", [True, False])
def test_one_way_cut_holds_only_that_direction(play: Callable[[Scene], None], deaf: bool) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        links.cut([] if deaf else [server.port], [server.port] if deaf else [])
        client.transport.write(b"1")
        server.writers[0].write(b"a")
        await until(lambda: server.got if deaf else client.got)
        await asyncio.sleep(A_MOMENT_S)
        assert (server.got, client.got) == ((b"1", b"") if deaf else (b"", b"a"))
        links.cut([], [])
        await until(lambda: (server.got, client.got) == (b"1", b"a"))

    play(scene)


def test_connecting_over_a_cut_link_waits_until_healed(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        for outgoing, incoming in (([server.port], []), ([], [server.port])):
            links.cut(outgoing, incoming)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(A_MOMENT_S):
                    await links.open(Client, "127.0.0.1", server.port)
        assert not server.writers
        waiting = asyncio.create_task(connect(links, server))
        await asyncio.sleep(0)
        links.cut([1], [1])
        assert not (await waiting).lost

    play(scene)


def test_refused_connection_is_reported_only_after_healing(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        links.cut([port], [port])
        waiting = asyncio.create_task(links.open(Client, "127.0.0.1", port))
        await asyncio.sleep(A_MOMENT_S)
        assert not waiting.done()
        links.cut([], [])
        with pytest.raises(ConnectionRefusedError):
            await waiting

    play(scene)


def test_close_by_the_node_reaches_the_other_side_only_after_healing(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        links.cut([server.port], [server.port])
        client.transport.write(b"lost with the connection")
        client.transport.abort()
        await until(lambda: client.lost)
        await asyncio.sleep(A_MOMENT_S)
        assert not server.ended
        links.cut([], [])
        await until(lambda: server.ended)
        assert server.got == b""

    play(scene)


@pytest.mark.parametrize("deaf", [True, False])
def test_closing_a_one_way_cut_link(play: Callable[[Scene], None], deaf: bool) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        links.cut([] if deaf else [server.port], [server.port] if deaf else [])
        client.transport.abort()
        client.transport.write(b"too late")
        server.writers[0].write(b"nobody listens")
        await until(lambda: client.lost)
        await asyncio.sleep(A_MOMENT_S)
        assert bool(server.ended) == deaf and client.got == b""
        links.cut([], [])
        await until(lambda: server.ended)
        assert (server.got, client.got) == (b"", b"")

    play(scene)


def test_close_by_the_other_side_reaches_the_node_only_after_healing(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        links.cut([server.port], [server.port])
        server.writers[0].write(b"last words")
        server.writers[0].close()
        await asyncio.sleep(A_MOMENT_S)
        assert not client.lost and client.got == b""
        links.cut([], [])
        await until(lambda: client.lost)
        assert client.got == b"last words"

    play(scene)


def test_reset_by_the_other_side_is_reported_after_healing(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        links.cut([], [server.port])
        server.writers[0].transport.abort()
        for _ in range(20):
            client.transport.write(b"into the void")
            await asyncio.sleep(0.005)
        assert not client.lost
        links.cut([server.port], [server.port])
        links.cut([], [])
        await until(lambda: client.lost)

    play(scene)


def test_cut_link_pauses_writing_at_the_high_water_mark(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        links.cut([server.port], [])
        client.transport.write(b"x" * 100_000)
        assert not client.may_write
        links.cut([], [])
        await until(lambda: len(server.got) == 100_000 and client.may_write)

    play(scene)


def test_cut_is_in_effect_when_it_is_acknowledged(play: Callable[[Scene], None]) -> None:
    async def scene(links: Links, server: Server) -> None:
        client = await connect(links, server)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            control = LinkControl(ours)
            assert not control.cut([], [], timeout=0), "nobody listens yet"
            serve_link_control(asyncio.get_running_loop(), theirs, links)
            assert await asyncio.to_thread(control.cut, [server.port], [], 5)
            client.transport.write(b"held")
            await asyncio.sleep(A_MOMENT_S)
            assert server.got == b""
            assert await asyncio.to_thread(control.cut, [], [], 5)
            await until(lambda: server.got == b"held")
            ours.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(A_MOMENT_S)
            assert not control.cut([server.port], [], timeout=5), "the node is gone"

    play(scene)
