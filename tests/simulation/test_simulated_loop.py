"""The simulated loop and network: virtual time, task order from a seed, cut links, killed processes."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from moldau.testing.simulation.loop import Deadlock
from moldau.testing.simulation.process import Process
from moldau.testing.simulation.world import Simulation


class Collector(asyncio.Protocol):
    """Collect the received bytes and record the events."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: Exception | str | None = "no"
        self.paused = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


async def pair(simulation: Simulation) -> tuple[Collector, Collector]:
    simulation.network.add_host("server")
    accepted: list[Collector] = []

    def accept() -> Collector:
        accepted.append(Collector())
        return accepted[-1]

    async def serve() -> None:
        (sock,) = simulation.network.bind("L", None, 9092, (-1, -1))
        await asyncio.get_running_loop().create_server(accept, sock=sock)

    await Process("server").spawn(serve())
    _, ours = await asyncio.get_running_loop().create_connection(Collector, "server", 9092)
    return ours, accepted[0]


def test_virtual_time_jumps_to_the_next_timer() -> None:
    simulation = Simulation(1)

    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert simulation.run(main()) == 86_400


def test_a_deadlock_is_reported() -> None:
    simulation = Simulation(1)

    async def wait_forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="wait_forever"):
        simulation.run(wait_forever())


def test_the_order_of_tasks_follows_the_seed() -> None:
    def order(seed: int) -> list[int]:
        done: list[int] = []

        async def main() -> None:
            async def work(number: int) -> None:
                await asyncio.sleep(0)
                done.append(number)

            await asyncio.gather(*(work(number) for number in range(6)))

        Simulation(seed).run(main())
        return done

    orders = [order(seed) for seed in range(6)]
    assert orders == [order(seed) for seed in range(6)]
    assert len({tuple(each) for each in orders}) > 2


def test_bytes_arrive_in_order_before_eof() -> None:
    simulation = Simulation(2)

    async def main() -> None:
        ours, theirs = await pair(simulation)
        sent = Random(1).randbytes(200_000)
        for start in range(0, len(sent), 7000):
            ours.transport.write(sent[start : start + 7000])
        ours.transport.close()
        await asyncio.sleep(1)
        assert theirs.data == sent
        assert ours.lost is None
        assert theirs.lost is None

    simulation.run(main())


def test_a_cut_link_holds_bytes_back_one_way() -> None:
    simulation = Simulation(3)

    async def main() -> None:
        ours, theirs = await pair(simulation)
        simulation.network.cut("client", "server", both=False)
        ours.transport.write(b"ping")
        theirs.transport.write(b"pong")
        await asyncio.sleep(5)
        assert (ours.data, theirs.data) == (b"pong", b"")
        simulation.network.heal()
        await asyncio.sleep(1)
        assert theirs.data == b"ping"
        simulation.network.reset("client", "server")
        await asyncio.sleep(1)
        assert isinstance(ours.lost, OSError)
        assert isinstance(theirs.lost, OSError)

    simulation.run(main())


def test_a_peer_that_does_not_read_pauses_the_writer() -> None:
    simulation = Simulation(4)

    async def main() -> None:
        ours, theirs = await pair(simulation)
        theirs.transport.pause_reading()
        ours.transport.write(b"x" * 1_000_000)
        await asyncio.sleep(1)
        assert ours.paused
        assert theirs.data == b""
        theirs.transport.resume_reading()
        await asyncio.sleep(1)
        assert not ours.paused
        assert len(theirs.data) == 1_000_000

    simulation.run(main())


def test_connecting_to_a_closed_port_is_refused() -> None:
    simulation = Simulation(5)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        simulation.network.add_host("empty")
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Collector, "empty", 1)
        with pytest.raises(OSError, match="not known"):
            await loop.create_connection(Collector, "nowhere", 1)

    simulation.run(main())


def test_a_killed_process_runs_no_callback() -> None:
    simulation = Simulation(6)

    async def main() -> None:
        did: list[str] = []

        async def live() -> None:
            asyncio.get_running_loop().call_later(2, did.append, "timer")
            try:
                while True:
                    await asyncio.sleep(1)
                    did.append("tick")
            finally:
                did.append("closed")

        process = Process("somewhere")
        process.spawn(live())
        await asyncio.sleep(1.5)
        simulation.loop.kill(process)
        await asyncio.sleep(10)
        assert did == ["tick", "closed"]

    simulation.run(main())
