"""Scenarios of a simulated cluster that seeds produce too rarely."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.testing.simulation.cluster import SimulatedCluster, combined, separate
from moldau.testing.simulation.world import Simulation
from tests.simulation.cluster.client import ClusterClient, check
from tests.simulation.cluster.consumers import Reader
from tests.simulation.cluster.history import History
from tests.simulation.cluster.producers import Producer

_ORDERS = TopicPartition("orders", 0)


class World:
    """Three combined nodes with one topic of three replicas."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.cluster = SimulatedCluster(self.simulation, combined(3))
        brokers = {node_id: f"node{node_id}" for node_id in self.cluster.broker_ids}
        self.client = ClusterClient(brokers, self.simulation.random("client"))
        self.history = History()
        self.producer = Producer(
            "producer", self.client, self.history, self.simulation.random("producer"), [_ORDERS]
        )

    async def start(self, **configs: str) -> None:
        self.cluster.format()
        await self.cluster.start()
        await self.create(_ORDERS.topic, **configs)

    async def create(self, topic: str, **configs: str) -> None:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        new = CreatableTopic(
            name=topic,
            num_partitions=1,
            replication_factor=3,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in settings.items()],
        )

        async def attempt() -> None:
            answer = await self.client.call_any(CreateTopicsRequest(topics=[new], timeout_ms=3000), 7)
            check(answer.topics[0].error_code)

        try:
            await self.client.persist(attempt)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def read_all(self) -> dict[int, bytes]:
        reader = Reader(self.client, _ORDERS)
        found = await self.client.persist(lambda: reader.read(max_wait_ms=0))
        while reader.position < reader.high_watermark:
            found |= await self.client.persist(lambda: reader.read(max_wait_ms=0))
        return found


def run(seed: int, scene: Callable[[World], Awaitable[None]]) -> None:
    world = World(seed)

    async def main() -> None:
        await scene(world)

    world.simulation.run(main())


def test_records_flushed_on_all_replicas_survive_a_power_loss_of_all() -> None:
    async def scene(world: World) -> None:
        await world.start(flush_messages="1", min_insync_replicas="2")
        for _ in range(10):
            await world.producer.send()
        for node_id in world.cluster.layout:
            world.cluster.lose_power(node_id)
        await world.cluster.start()
        found = await world.read_all()
        for offset, value in world.history.acknowledged[_ORDERS].items():
            assert found.get(offset) == value, f"{value!r} at {offset} is lost"

    for seed in range(8):
        run(seed, scene)


def test_a_node_with_a_full_disk_can_be_stopped() -> None:
    async def scene(world: World) -> None:
        await world.start()
        for node_id in world.cluster.layout:
            world.cluster.machines[node_id].drive.free = 0
            await world.cluster.stop(node_id)

    run(0, scene)


def test_a_node_with_a_full_disk_follows_a_new_controller_later() -> None:
    async def scene(world: World) -> None:
        cluster = world.cluster
        await world.start()
        active = next(node_id for node_id, node in cluster.nodes.items() if node.metadata.is_active)
        full = next(node_id for node_id in cluster.layout if node_id != active)
        cluster.machines[full].drive.free = 0
        await world.create("more")
        await asyncio.sleep(3)
        cluster.kill(active)
        await asyncio.sleep(5)
        cluster.machines[full].drive.free = None
        cluster.boot(active)
        await cluster.all_serving(30)
        await world.create("even-more")
        async with asyncio.timeout(20):
            while "even-more" not in cluster.nodes[full].image.topics.by_name:
                await asyncio.sleep(0.1)

    for seed in range(4):
        run(seed, scene)


def test_a_controller_loads_its_snapshot_before_it_writes() -> None:
    simulation = Simulation(0)

    async def scene() -> None:
        settings = {"metadata.log.max.record.bytes.between.snapshots": "1", "log.dirs": "/data/a"}
        cluster = SimulatedCluster(simulation, separate(controllers=3, brokers=1), settings)
        cluster.format()
        await cluster.start()
        await asyncio.sleep(2)
        follower = next(
            each for each in cluster.layout if each != 1 and not cluster.nodes[each].metadata.is_active
        )
        before = cluster.nodes[follower].image.offset
        await cluster.stop(follower)
        cluster.boot(follower)
        await cluster.all_serving(30)
        await asyncio.sleep(1)
        assert cluster.nodes[follower].image.offset >= before

    simulation.run(scene())
