"""One simulation, derived from a seed: its loop, its network and its nodes.

    simulation = Simulation(seed)
    simulation.run(scenario(simulation))

Each component draws random numbers from a stream of its own (`simulation.random("name")`), so that one does
not influence another. A `SimulatedNode` is a machine with a drive: it is formatted, booted, loses power or
is killed, and is booted again on the remaining data. Repeat a failed run with the same seed; `trace` tells
whether two runs were equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any, TypeVar

from moldau.config.broker.config import BrokerConfig
from moldau.network.client import NodeConnection
from moldau.server.node import Node
from moldau.server.startup.format import FormatOptions, format_storage
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import Disk
from moldau.testing.simulation.clock import SimulatedClock, SimulatedPool
from moldau.testing.simulation.disk import SimulatedDisk
from moldau.testing.simulation.drive import Drive
from moldau.testing.simulation.faults import PowerLost
from moldau.testing.simulation.loop import SimulatedLoop
from moldau.testing.simulation.network import SimulatedNetwork
from moldau.testing.simulation.process import Process
from moldau.testing.simulation.trace import Trace

T = TypeVar("T")


class Simulation:
    def __init__(self, seed: int | str, *, keep_trace: bool = False, shuffle: bool = True) -> None:
        self.seed = seed
        self.trace = Trace(keep=keep_trace)
        self.network = SimulatedNetwork(self.random("network"), self.trace)
        order = self.random("order") if shuffle else None
        self.loop = SimulatedLoop(self.network, trace=self.trace, shuffle=order)
        self.loop.set_exception_handler(self._report)
        #: Uncaught exceptions.
        self.unhandled: list[str] = []

    def random(self, purpose: str) -> Random:
        """Return a new stream of random numbers, equal for equal purposes."""
        return Random(f"{self.seed}/{purpose}")

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(main)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record an uncaught exception, except `PowerLost`."""
        error = context.get("exception")
        if not isinstance(error, PowerLost):
            self.unhandled.append(f"{context.get('message')}: {error!r}")
            loop.default_exception_handler(context)

    async def connect(self, host: str, port: int = 9092) -> NodeConnection:
        return await NodeConnection.connect(host, port)


class SimulatedNode:
    """A machine with one node; process, clock and disk access are created again at every boot."""

    def __init__(
        self, simulation: Simulation, config: Mapping[str, str] | None = None, *, node_id: int = 1
    ) -> None:
        self.host = f"node{node_id}"
        self.clock = SimulatedClock(simulation.loop)
        self.drive = Drive(simulation.trace, self.clock.time_ms)
        self.drive.cold = simulation.random(f"{self.host}/cold")
        self.pool = SimulatedPool(simulation.random(f"{self.host}/pool"))
        self.config = _config(self.host, node_id, config or {})
        self.powered_off = asyncio.Event()
        self.failed = asyncio.Event()
        #: Set on power loss or a fatal error.
        self.over = asyncio.Event()
        #: Set when the process has ended for any reason.
        self._gone = asyncio.Event()
        self.node: Node | None = None
        #: Wraps the node's disk, for tests that break its rules.
        self.wrap_disk: Callable[[Disk], Disk] = lambda disk: disk
        self._simulation = simulation
        self.randomness = simulation.random(f"{self.host}/ids")
        self._losses = simulation.random(f"{self.host}/losses")
        self._process: Process | None = None
        self._disk: SimulatedDisk | None = None
        simulation.network.add_host(self.host)
        self.drive.on_power_loss = self._power_went

    @property
    def running(self) -> Node:
        if self.node is None:
            raise RuntimeError(f"{self.host} is not running")
        return self.node

    def format(self, options: FormatOptions | None = None) -> None:
        format_storage(SimulatedDisk(self.drive), self.clock, self.randomness, self.config, options)

    async def boot(self) -> Node:
        """Start the node on the data of the drive; raise the error of `Node.start`, or `PowerLost`."""
        self.powered_off.clear()
        self.failed.clear()
        self.over.clear()
        self._gone.clear()
        self._process = process = Process(self.host)
        self._disk = disk = SimulatedDisk(self.drive)
        pool = self.pool = SimulatedPool(self._simulation.random(f"{self.host}/pool/{self.drive.operations}"))
        self.node = Node(
            self.config,
            clock=self.clock,
            randomness=self.randomness,
            disk=self.wrap_disk(disk),
            pool=pool,
            cleaner=InlineRunner(disk, pool),
            on_fatal=self._gave_up,
            open_sockets=self._simulation.network.bind,
        )
        await self._unless_power_goes(process.spawn(self.node.start()))
        return self.node

    async def stop(self) -> None:
        """Shut the node down cleanly; `PowerLost` if power is lost meanwhile."""
        process, node = self._process, self.node
        if process is not None and node is not None:
            await self._unless_power_goes(process.spawn(node.stop()))
            if self._process is process:
                self._end(silently=False)

    async def _unless_power_goes(self, work: asyncio.Task[Any]) -> None:
        """Wait until the work is done or the process has ended."""
        power = asyncio.ensure_future(self._gone.wait())
        done = asyncio.Event()
        for each in (work, power):
            each.add_done_callback(lambda _: done.set())
        try:
            await done.wait()
        finally:
            power.cancel()
        if self.powered_off.is_set():
            raise PowerLost(self.host)
        if work.done():
            work.result()

    def kill(self) -> None:
        """Kill the process (`kill -9`); its writes stay in the page cache."""
        self._end(silently=False)

    def lose_power(self) -> None:
        """Switch the machine off, unless `crash_after` has done so, and decide which data is lost."""
        if self.drive.on:
            self.drive.power_off()
        self._end(silently=True)
        self.drive.power_loss(self._losses)

    def _power_went(self) -> None:
        if self._process is not None:
            self._process.alive = False
        self.powered_off.set()
        self._gone.set()
        self.over.set()

    def _gave_up(self) -> None:
        self.failed.set()
        self.over.set()

    def _end(self, *, silently: bool) -> None:
        process, self._process, self.node = self._process, None, None
        if process is None:
            return
        self._gone.set()
        self._simulation.network.leave(process, silently=silently)
        self._simulation.loop.kill(process)
        if self._disk is not None:
            self._disk.detach()


def _config(host: str, node_id: int, more: Mapping[str, str]) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{host}:9092,CONTROLLER://{host}:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"{host}:9093",
            "log.dirs": "/data/a,/data/b",
            **more,
        }
    )
