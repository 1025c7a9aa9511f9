"""A whole cluster in one simulation: real nodes of every role, each on a machine that can fail.

    cluster = SimulatedCluster(simulation, combined(3))
    cluster.format()
    await cluster.start()

A supervisor restarts the node of each `up` machine shortly after it exits or fails to start; a `down`
machine stays down until it is booted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from moldau.base.errors import KafkaError
from moldau.base.ids import format_uuid, random_uuid
from moldau.server.node import Node
from moldau.server.startup.format import FormatOptions
from moldau.testing.simulation.faults import PowerLost
from moldau.testing.simulation.world import SimulatedNode, Simulation

logger = logging.getLogger(__name__)

_START_AGAIN_SECONDS = 1.0
_CONTROLLER_PORT = 9093

#: By node id: `process.roles`.
Layout = Mapping[int, str]


def combined(nodes: int) -> Layout:
    """Return combined nodes: each is a broker and a voter."""
    return dict.fromkeys(range(1, nodes + 1), "broker,controller")


def separate(controllers: int, brokers: int) -> Layout:
    """Return dedicated brokers and controllers, brokers first, because clients use the first nodes."""
    roles = dict.fromkeys(range(1, brokers + 1), "broker")
    return roles | dict.fromkeys(range(brokers + 1, brokers + controllers + 1), "controller")


class SimulatedCluster:
    def __init__(
        self,
        simulation: Simulation,
        layout: Layout,
        config: Mapping[str, str] | None = None,
        *,
        dynamic: bool = True,
    ) -> None:
        """`dynamic`: the voters are in the metadata log (KIP-853), else in `controller.quorum.voters`."""
        self.simulation = simulation
        self.layout = layout
        self._dynamic = dynamic
        self._randomness = simulation.random("cluster")
        self.cluster_id = format_uuid(random_uuid(self._randomness))
        self._voter_ids = [node_id for node_id, roles in layout.items() if "controller" in roles]
        self._directories = {node_id: random_uuid(self._randomness) for node_id in self._voter_ids}
        self.machines = {
            node_id: SimulatedNode(simulation, self._config(node_id, config or {}), node_id=node_id)
            for node_id in layout
        }
        self._keepers: dict[int, asyncio.Task[None]] = {}
        self._stopping: set[int] = set()
        #: Nodes that serve requests.
        self._serving: set[int] = set()
        self.failed_starts: list[Exception] = []

    @property
    def broker_ids(self) -> list[int]:
        return [node_id for node_id, roles in self.layout.items() if "broker" in roles]

    @property
    def nodes(self) -> dict[int, Node]:
        """Return all running nodes, whether they serve requests or still start."""
        return {
            node_id: machine.node for node_id, machine in self.machines.items() if machine.node is not None
        }

    @property
    def serving(self) -> dict[int, Node]:
        return {node_id: node for node_id, node in self.nodes.items() if node_id in self._serving}

    def is_up(self, node_id: int) -> bool:
        """Return whether the machine is up, or its node has not exited yet."""
        return node_id in self._keepers or node_id in self._stopping

    def _config(self, node_id: int, more: Mapping[str, str]) -> dict[str, str]:
        host, roles = f"node{node_id}", self.layout[node_id]
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://{host}:9092")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://{host}:{_CONTROLLER_PORT}")
        voters = [(voter, f"node{voter}:{_CONTROLLER_PORT}") for voter in self._voter_ids]
        quorum = {"controller.quorum.bootstrap.servers": ",".join(address for _, address in voters)}
        if not self._dynamic:
            quorum = {"controller.quorum.voters": ",".join(f"{voter}@{address}" for voter, address in voters)}
        config = {"process.roles": roles, "listeners": ",".join(listeners), **quorum, **more}
        if not self._dynamic:
            config["controller.quorum.bootstrap.servers"] = ""
        return config

    # Starting and stopping.

    def format(self) -> None:
        controllers = ",".join(
            f"{voter}@node{voter}:{_CONTROLLER_PORT}:{format_uuid(self._directories[voter])}"
            for voter in self._voter_ids
        )
        for node_id, machine in self.machines.items():
            votes = self._dynamic and node_id in self._voter_ids
            machine.format(
                FormatOptions(
                    cluster_id=self.cluster_id,
                    initial_controllers=controllers if votes else None,
                    no_initial_controllers=self._dynamic and not votes,
                )
            )

    async def start(self, timeout_seconds: float = 60.0) -> None:
        """Boot all machines and wait until all nodes serve requests."""
        for node_id in self.layout:
            self.boot(node_id)
        await self.all_serving(timeout_seconds)

    async def all_serving(self, timeout_seconds: float) -> None:
        async with asyncio.timeout(timeout_seconds):
            while len(self._serving) < len(self.layout):
                await asyncio.sleep(0.05)
                self.check_starts()

    def check_starts(self) -> None:
        """Raise the error of a failed start, unless it is an expected one."""
        for error in self.failed_starts:
            if not isinstance(error, KafkaError | OSError):
                raise error

    def boot(self, node_id: int) -> None:
        """Boot the machine and keep it up."""
        if not self.is_up(node_id):
            self._keepers[node_id] = asyncio.create_task(self._keep_up(node_id), name=f"keeper{node_id}")

    async def _keep_up(self, node_id: int) -> None:
        machine = self.machines[node_id]
        while True:
            try:
                await machine.boot()
                self._serving.add(node_id)
                await machine.over.wait()
            except PowerLost:
                logger.info("node %d lost power while it started", node_id)
            except Exception as error:  # noqa: BLE001  whatever it is, this process has ended
                logger.info("node %d did not start: %s", node_id, error)
                self.failed_starts.append(error)
            self._off(node_id, power=machine.powered_off.is_set())
            await asyncio.sleep(_START_AGAIN_SECONDS)

    def kill(self, node_id: int) -> None:
        """Kill the node (`kill -9`); it stays down."""
        self._release(node_id)
        self._off(node_id, power=False)

    def lose_power(self, node_id: int) -> None:
        """Lose power: unsynced data may be lost; the machine stays down."""
        self._release(node_id)
        self._off(node_id, power=True)

    async def stop(self, node_id: int) -> None:
        """Shut the node down cleanly; it stays down."""
        self._release(node_id)
        self._stopping.add(node_id)
        try:
            await self.machines[node_id].stop()
        except PowerLost:
            if not self.machines[node_id].drive.on:
                self._off(node_id, power=True)
        finally:
            self._stopping.discard(node_id)
            self._serving.discard(node_id)

    def _release(self, node_id: int) -> None:
        keeper = self._keepers.pop(node_id, None)
        if keeper is not None:
            keeper.cancel()

    def _off(self, node_id: int, *, power: bool) -> None:
        self._serving.discard(node_id)
        if power:
            self.machines[node_id].lose_power()
        else:
            self.machines[node_id].kill()
