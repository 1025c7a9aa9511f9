"""Faults of a simulated cluster. Every seed draws the kinds it uses, so that rare kinds coincide.

A power loss loses unsynced records, because Kafka guarantees replication and not disk writes: therefore only
one machine at a time loses power, only while all replicas are in sync, and no other machine stops until they
are in sync again. To the controller, a killed process is the same as a machine that lost power: it
leaves the ISR when it restarts. Otherwise any number of processes may be killed at any time.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.testing.simulation.cluster import SimulatedCluster
from moldau.testing.simulation.faults import Fault, Operation
from moldau.testing.simulation.network import OUTSIDE
from tests.simulation.cluster.client import ClusterClient

_PREFERRED = 0


class Faults:
    def __init__(
        self,
        cluster: SimulatedCluster,
        client: ClusterClient,
        random: Random,
        targets: list[TopicPartition],
        only: Sequence[str] = (),
    ) -> None:
        """With `only`, use these kinds instead of randomly drawn ones."""
        self._cluster = cluster
        self._network = cluster.simulation.network
        self._client = client
        self._random = random
        self._targets = targets
        self._tasks: list[asyncio.Task[None]] = []
        #: Nodes with a failed log directory, until they are restarted.
        self._broken: set[int] = set()
        self._topics = 0
        #: A machine has lost unsynced records and may not have fetched them again yet.
        self._forgetful = False
        kinds: dict[str, Callable[[], Awaitable[None] | None]] = {
            "kill": self._kill,
            "kill the controller": self._kill_controller,
            "power": self._lose_power,
            "stop": self._stop,
            "roll": self._roll,
            "cut": self._cut,
            "isolate": self._isolate,
            "reset": self._reset,
            "slow link": self._slow_link,
            "slow disk": self._slow_disk,
            "full disk": self._full_disk,
            "broken disk": self._break_disk,
            "clock": self._jump,
            "reassign": self._reassign,
            "elect": self._elect,
            "topics": self._change_topics,
        }
        drawn = random.sample(list(kinds), random.randint(3, len(kinds)))
        self._kinds = {name: kinds[name] for name in only or drawn}
        self.happened: list[str] = []

    async def happen(self) -> None:
        """Cause a fault, or end one."""
        boot = self._random.random() < 0.35 or len(self._down()) > len(self._cluster.layout) // 2
        if boot and self._down():
            self._boot(self._random.choice(self._down()))
            return
        if self._random.random() < 0.2:
            self._mend()
            return
        name = self._random.choice(list(self._kinds))
        self.happened.append(name)
        done = self._kinds[name]()
        if done is not None:
            await done

    async def end(self) -> None:
        """End all faults."""
        self._mend()
        for task in self._tasks:
            await task
        for node_id in sorted(self._broken):
            self._cluster.kill(node_id)
        for node_id in self._down():
            self._boot(node_id)

    # Helpers.

    def _down(self) -> list[int]:
        return [node_id for node_id in self._cluster.layout if not self._cluster.is_up(node_id)]

    def _someone(self) -> int | None:
        up = [node_id for node_id in self._cluster.layout if self._cluster.is_up(node_id)]
        return self._random.choice(up) if up else None

    def _boot(self, node_id: int) -> None:
        self.happened.append(f"boot {node_id}")
        self._cluster.boot(node_id)

    def _mend(self) -> None:
        self.happened.append("mend")
        self._network.heal()
        for machine in self._cluster.machines.values():
            machine.drive.free = None
            machine.drive.faults.clear()
            machine.pool.slowness = 1.0

    # Machines.

    def _may_end(self) -> bool:
        """Whether a machine may stop without violating the guarantees."""
        if self._forgetful and self._all_in_sync():
            self._forgetful = False
        return not self._forgetful

    def _kill(self) -> None:
        node_id = self._someone()
        if node_id is not None and self._may_end():
            self._cluster.kill(node_id)

    def _kill_controller(self) -> None:
        if not self._may_end():
            return
        for node_id, node in self._cluster.serving.items():
            if node.metadata.is_active:
                self._cluster.kill(node_id)
                return

    def _lose_power(self) -> None:
        node_id = self._someone()
        if node_id is not None and self._all_in_sync():
            self._forgetful = True
            self._cluster.lose_power(node_id)

    def _all_in_sync(self) -> bool:
        serving = self._cluster.serving
        if len(serving) < len(self._cluster.layout):
            return False
        image = max((node.metadata.image for node in serving.values()), key=lambda image: image.offset)
        return all(
            set(partition.isr) >= set(partition.replicas)
            for topic in image.topics.by_name.values()
            for partition in topic.partitions.values()
        )

    def _stop(self) -> None:
        node_id = self._someone()
        if node_id is not None and node_id in self._cluster.serving and self._may_end():
            self._tasks.append(asyncio.create_task(self._cluster.stop(node_id)))

    async def _roll(self) -> None:
        """Restart every node, one after the other."""
        for node_id in self._cluster.layout:
            if node_id not in self._cluster.serving or not self._may_end():
                continue
            await self._cluster.stop(node_id)
            self._cluster.boot(node_id)
            try:
                await self._cluster.all_serving(10)
            except TimeoutError:
                return

    # Network, disks, clocks.

    def _hosts(self) -> list[str]:
        return [machine.host for machine in self._cluster.machines.values()]

    def _cut(self) -> None:
        one, other = self._random.sample([*self._hosts(), OUTSIDE], 2)
        self._network.cut(one, other, both=self._random.random() < 0.5)

    def _isolate(self) -> None:
        """Isolate one node from all others; clients may still reach it."""
        one = self._random.choice(self._hosts())
        for other in self._hosts():
            if other != one:
                self._network.cut(one, other)

    def _reset(self) -> None:
        one, other = self._random.sample([*self._hosts(), OUTSIDE], 2)
        self._network.reset(one, other)

    def _slow_link(self) -> None:
        one, other = self._random.sample(self._hosts(), 2)
        self._network.slow(one, other, self._random.choice((50.0, 400.0, 3000.0)))

    def _slow_disk(self) -> None:
        machine = self._cluster.machines[self._random.choice(list(self._cluster.machines))]
        machine.pool.slowness = self._random.choice((50.0, 1000.0))

    def _full_disk(self) -> None:
        machine = self._cluster.machines[self._random.choice(list(self._cluster.machines))]
        if self._random.random() < 0.5:
            machine.drive.free = self._random.randint(0, 3000)
        else:
            machine.drive.faults.append(
                Fault(errno.ENOSPC, frozenset({Operation.WRITE}), times=self._random.randint(1, 5))
            )

    def _break_disk(self) -> None:
        """Fail one of two log directories of a broker; it stays offline until the process is restarted."""
        node_id = self._random.choice(self._cluster.broker_ids)
        if self._broken or self._forgetful or not self._all_in_sync():
            return
        self._broken.add(node_id)
        drive = self._cluster.machines[node_id].drive
        drive.faults.append(Fault(errno.EIO, frozenset({Operation.WRITE}), "/data/b/*"))

    def _jump(self) -> None:
        machine = self._cluster.machines[self._random.choice(list(self._cluster.machines))]
        machine.clock.offset_ms += self._random.choice((-5000, 5000, -3_600_000, 3_600_000))

    # Administration.

    async def _reassign(self) -> None:
        where = self._random.choice(self._targets)
        brokers = self._cluster.broker_ids
        replicas = self._random.sample(brokers, min(3, len(brokers)))
        partition = ReassignablePartition(partition_index=where.partition, replicas=replicas)
        topic = ReassignableTopic(name=where.topic, partitions=[partition])
        await self._ask(AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=3000), 1)

    async def _elect(self) -> None:
        where = self._random.choice(self._targets)
        asked = [TopicPartitions(topic=where.topic, partitions=[where.partition])]
        await self._ask(
            ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=asked, timeout_ms=3000), 2
        )

    async def _change_topics(self) -> None:
        """Create a topic and delete another."""
        self._topics += 1
        new = CreatableTopic(
            name=f"other-{self._topics}", num_partitions=self._random.randint(1, 3), replication_factor=-1
        )
        await self._ask(CreateTopicsRequest(topics=[new], timeout_ms=3000), 7)
        if self._random.random() < 0.6:
            old = DeleteTopicState(name=f"other-{self._random.randint(1, self._topics)}")
            await self._ask(DeleteTopicsRequest(topics=[old], timeout_ms=3000), 6)

    async def _ask(self, request: object, version: int) -> None:
        try:
            await self._client.call_any(request, version)  # type: ignore[arg-type]
        except KafkaError:
            self._client.forget()
