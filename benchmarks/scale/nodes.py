"""A cluster of many nodes in the simulator: growth of metadata traffic, and duration of a failover.

    python -m benchmarks.scale.nodes [--nodes 10,30,100] [--partitions 10]

All nodes run in one process with a virtual clock: three controllers, the rest brokers. Traffic is that of the
controllers' listeners; times are virtual, with a network latency of at most 2 ms.
`--partitions` are per broker, three replicas each.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time

from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.testing.simulation.cluster import SimulatedCluster, separate
from moldau.testing.simulation.trace import Trace
from moldau.testing.simulation.world import Simulation

_CONTROLLERS = 3
_CONTROLLER_PORT = 9093
_IDLE_SECONDS = 10.0
_CREATE_TOPICS_VERSION = 7


class Traffic(Trace):
    """Counts the bytes received and sent by the controllers' listeners."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def note(self, *fields: object) -> None:
        if fields[0] == "bytes" and _CONTROLLER_PORT in (fields[2], fields[4]):
            self.bytes += int(str(fields[5]))


class Many:
    def __init__(self, nodes: int, partitions: int) -> None:
        self.simulation = Simulation(nodes, shuffle=False)
        self.traffic = self.simulation.network.trace = Traffic()
        self.brokers = nodes - _CONTROLLERS
        self.partitions = self.brokers * partitions
        self.cluster = SimulatedCluster(
            self.simulation, separate(_CONTROLLERS, self.brokers), {"log.dirs": "/data/a"}
        )

    async def measure(self) -> dict[str, float]:
        begin = time.perf_counter()
        self.cluster.format()
        await self.cluster.start(120)
        started, started_bytes = self.simulation.loop.time(), self.traffic.bytes
        idle = await self._bytes_during(asyncio.sleep(_IDLE_SECONDS))
        created = await self._bytes_during(self._create())
        killed_at = self.simulation.loop.time()
        died = await self._bytes_during(self._kill())
        took = self.simulation.loop.time() - killed_at
        return {
            "partitions": self.partitions,
            "all nodes serve after, virtual s": started,
            "metadata traffic of the start, MB": started_bytes / 1e6,
            "idle metadata traffic, kB/s": idle / _IDLE_SECONDS / 1e3,
            "traffic of creating the partitions, MB": created / 1e6,
            "a broker is killed: every node knows the new leaders after, virtual ms": took * 1e3,
            "traffic of that, MB": died / 1e6,
            "real seconds for all of this": time.perf_counter() - begin,
        }

    async def _bytes_during(self, work: object) -> int:
        before = self.traffic.bytes
        await work  # type: ignore[misc]
        return self.traffic.bytes - before

    async def _create(self) -> None:
        connection = await self.simulation.connect("node1")
        new = CreatableTopic(name="many", num_partitions=self.partitions, replication_factor=3)
        request = CreateTopicsRequest(topics=[new], timeout_ms=30_000)
        answer = await connection.call(request, _CREATE_TOPICS_VERSION)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        await self._until(lambda leaders: len(leaders) == self.partitions)
        await asyncio.sleep(2)

    async def _kill(self) -> None:
        victim = self.brokers
        self.cluster.kill(victim)
        await self._until(lambda leaders: victim not in leaders)

    async def _until(self, holds: object) -> None:
        """Run until the metadata of every node satisfies the condition."""
        while True:
            images = [node.image for node in self.cluster.serving.values()]
            found = [image.topics.by_name.get("many") for image in images]
            if all(
                topic is not None and holds([each.leader for each in topic.partitions.values()])  # type: ignore[operator]
                for topic in found
            ):
                return
            await asyncio.sleep(0.001)


def main() -> None:
    logging.disable(logging.CRITICAL)
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--nodes", default="10,30,100")
    arguments.add_argument("--partitions", type=int, default=10)
    options = arguments.parse_args()
    sizes = [int(each) for each in options.nodes.split(",")]
    columns = []
    for nodes in sizes:
        many = Many(nodes, options.partitions)
        columns.append(many.simulation.run(many.measure()))
    print("| | " + " | ".join(f"{nodes} nodes" for nodes in sizes) + " |")
    print("|---|" + "---:|" * len(sizes))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(f"{column[name]:,.4g}" for column in columns) + " |")


if __name__ == "__main__":
    main()
