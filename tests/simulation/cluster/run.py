"""The simulation of a cluster from a seed: clients of all kinds, faults, and recovery at the end.

Nodes are real; only clock, network, disk and threads are simulated. The guarantees to clients are in
`history`, the internal invariants in `invariants`, the faults in `faults`. When the faults are over,
every client must get its response within bounded time, every node must serve, and all records be readable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.network.connector import PLAINTEXT
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.testing.simulation.cluster import Layout, SimulatedCluster, combined, separate
from moldau.testing.simulation.world import Simulation
from tests.simulation.cluster.client import ClusterClient, check
from tests.simulation.cluster.consumers import Committer, Consumer, Reader, offset_of
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.history import History
from tests.simulation.cluster.invariants import Invariants
from tests.simulation.cluster.producers import (
    IdempotentProducer,
    LooseProducer,
    Producer,
    TransactionalProducer,
)
from tests.simulation.cluster.security import (
    ADMIN,
    CLIENT,
    INTRUDER,
    Intruder,
    grant_clients,
    login,
    secured_config,
)
from tests.simulation.cluster.streams import CONFIG as STREAMS_CONFIG
from tests.simulation.cluster.streams import StreamsApplication

_CREATE_TOPICS_VERSION = 7
_LOOK_SECONDS = 0.1
_START_SECONDS = 60.0
#: How long clients may wait for responses and nodes for their replicas after the last fault.
_HEALED_SECONDS = 120.0
_TOPICS = {"orders": 2, "events": 1}
#: The part of simulations in which every connection logs in and ACLs decide.
_SECURED_PART = 0.3
#: The part of the others with applications of a streams group.
_STREAMS_PART = 0.3

_Records = dict[TopicPartition, dict[int, bytes]]


class ClusterRun:
    def __init__(
        self,
        simulation: Simulation,
        *,
        layout: Layout | None = None,
        steps: int = 8,
        faults: Sequence[str] = (),
        secured: bool | None = None,
        streams: bool | None = None,
    ) -> None:
        """`layout`, `faults`, `secured` and `streams` are drawn at random unless given."""
        self.simulation = simulation
        self.random = simulation.random("life")
        self.history = History()
        self._steps = steps
        self.durable = self.random.random() < 0.3
        drawn_security = simulation.random("security").random() < _SECURED_PART
        self.secured = drawn_security if secured is None else secured
        drawn_streams = simulation.random("streams").random() < _STREAMS_PART
        self._has_streams = not self.secured and (drawn_streams if streams is None else streams)
        drawn = self.random.choice((combined(3), combined(3), separate(3, 3), separate(1, 3), combined(5)))
        dynamic = self.random.random() < 0.5
        layout = layout or drawn
        self._replicas = min(3, sum("broker" in roles for roles in layout.values()))
        self.cluster = SimulatedCluster(simulation, layout, self._config(), dynamic=dynamic)
        self.invariants = Invariants(self.cluster)
        self.targets = [
            TopicPartition(topic, index) for topic, count in _TOPICS.items() for index in range(count)
        ]
        self._brokers = {node_id: f"node{node_id}" for node_id in self.cluster.broker_ids}
        self.faults = Faults(self.cluster, self._client("operator", ADMIN), self.random, self.targets, faults)
        for machine in self.cluster.machines.values():
            machine.clock.offset_ms = self.random.choice((0, 0, 1000, -7_200_000, 7_200_000))
            machine.clock.speed = self.random.choice((1.0, 1.0, 0.97, 1.03))

    def _config(self) -> dict[str, str]:
        replicas, in_sync = str(self._replicas), str(min(2, self._replicas))
        config = {
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "broker.session.timeout.ms": "6000",
            "replica.lag.time.max.ms": "5000",
            "min.insync.replicas": in_sync,
            "transaction.state.log.min.isr": in_sync,
            "default.replication.factor": replicas,
            "log.dirs": self.random.choice(("/data/a", "/data/a,/data/b")),
            "metadata.log.max.record.bytes.between.snapshots": self.random.choice(("2000", "20000000")),
        }
        if self._has_streams:
            config |= STREAMS_CONFIG
        if self.durable:
            config["log.flush.interval.messages"] = "1"
        return config | secured_config() if self.secured else config

    def _client(self, name: str, user: str = CLIENT) -> ClusterClient:
        connector = login(user) if self.secured else PLAINTEXT
        return ClusterClient(self._brokers, self.simulation.random(f"client/{name}"), connector)

    async def run(self) -> None:
        self.cluster.format()
        await self.cluster.start(_START_SECONDS)
        if self.secured:
            await grant_clients(self._client("granting", ADMIN))
        await self._create_topics()
        workers = [asyncio.create_task(work()) for work in self._workers()]
        watch = asyncio.create_task(self._watch())
        for _ in range(self._steps):
            await self.faults.happen()
            await self._pass_time(self.random.choice((0.1, 0.5, 1.5, 4.0)), workers, watch)
        await self.faults.end()
        await self._pass_time(2.0, workers, watch)
        self.history.stopping = True
        await self._finish(workers, watch)
        await self._check_end()
        watch.cancel()

    async def _pass_time(self, seconds: float, *tasks: object) -> None:
        """Let time pass; fail at once if a worker has failed."""
        until = self.simulation.loop.time() + seconds
        while self.simulation.loop.time() < until:
            await asyncio.sleep(min(0.2, seconds))
            for each in tasks:
                for task in each if isinstance(each, list) else [each]:
                    if task.done():
                        task.result()

    async def _watch(self) -> None:
        while True:
            self.invariants.look()
            await asyncio.sleep(_LOOK_SECONDS)

    def _workers(self) -> list[Callable[[], Awaitable[None]]]:
        history, targets = self.history, self.targets
        kinds = [
            Producer("plain", self._client("plain"), history, self.simulation.random("plain"), targets),
            LooseProducer("loose", self._client("loose"), history, self.simulation.random("loose"), targets),
        ]
        for name in ("once-a", "once-b"):
            random = self.simulation.random(name)
            kinds.append(IdempotentProducer(name, self._client(name), history, random, targets))
        for name in ("txn-a", "txn-b"):
            random = self.simulation.random(name)
            kinds.append(TransactionalProducer(name, self._client(name), history, random, targets))
        consumers = [
            Consumer(
                self._client(f"consumer{committed}"),
                history,
                self.simulation.random(f"consumer{committed}"),
                targets,
                committed=committed,
            )
            for committed in (False, True)
        ]
        self.committers = [
            Committer(group, self._client(group), history, self.simulation.random(group), targets[0])
            for group in ("group-a", "group-b")
        ]
        workers = [each.run for each in (*kinds, *consumers, *self.committers, *self._applications())]
        if self.secured:
            client, random = self._client("intruder", INTRUDER), self.simulation.random("intruder")
            workers.append(Intruder(client, history, random, targets).run)
        return workers

    def _applications(self) -> list[StreamsApplication]:
        if not self._has_streams:
            return []
        members: dict[str, str] = {}
        settled: set[str] = set()
        source = next(iter(_TOPICS.items()))
        return [
            StreamsApplication(
                name, self._client(name), self.history, self.simulation.random(name), source, members, settled
            )
            for name in ("application-a", "application-b", "application-c")
        ]

    async def _create_topics(self) -> None:
        client = self._client("creator", ADMIN)
        for name, count in _TOPICS.items():
            new = CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=self._replicas,
                configs=[CreatableTopicConfig(name="min.insync.replicas", value=str(min(2, self._replicas)))],
            )
            request = CreateTopicsRequest(topics=[new], timeout_ms=3000)

            async def create(request: CreateTopicsRequest = request) -> None:
                answer = await client.call_any(request, _CREATE_TOPICS_VERSION)
                check(answer.topics[0].error_code)

            try:
                await client.persist(create)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    # The end.

    async def _finish(self, workers: list[asyncio.Task[None]], watch: asyncio.Task[None]) -> None:
        until = self.simulation.loop.time() + _HEALED_SECONDS
        while not all(worker.done() for worker in workers):
            await self._pass_time(0.2, workers, watch)
            waiting = [str(each.get_coro()) for each in workers if not each.done()]
            assert self.simulation.loop.time() < until, f"every client gets its answer: not {waiting}; {self}"
        for worker in workers:
            worker.result()
        reached = max(node.metadata.image.offset for node in self.cluster.serving.values())
        while not self._all_follow(reached):
            await self._pass_time(0.2, watch)
            assert self.simulation.loop.time() < until, f"every node serves and follows again: {self}"

    def _all_follow(self, offset: int) -> bool:
        """Whether every node serves and has applied the metadata up to this offset."""
        serving = self.cluster.serving
        return len(serving) == len(self.cluster.layout) and all(
            node.image.offset >= offset for node in serving.values()
        )

    async def _check_end(self) -> None:
        try:
            async with asyncio.timeout(_HEALED_SECONDS):
                everything, committed, offsets = await self._read_everything()
        except TimeoutError:
            raise AssertionError(f"everything is decided and readable in the end: {self}") from None
        self.history.check_end(everything, committed, offsets)
        self.invariants.compare_from_the_beginning()
        self.invariants.look()

    async def _read_everything(self) -> tuple[_Records, _Records, dict[str, int]]:
        """Return all records, the committed ones, and the offsets that transactions committed."""
        client = self._client("checker")
        for committer in self.committers:
            await committer.look()
        everything = {each: await self._read_all(client, each, committed=False) for each in self.targets}
        committed = {each: await self._read_all(client, each, committed=True) for each in self.targets}
        offsets = {}
        for name in self.history.by_producer:
            offsets[name] = await client.persist(
                lambda name=name: offset_of(client, name, self.targets[0])  # type: ignore[misc]
            )
        return everything, committed, offsets

    async def _read_all(
        self, client: ClusterClient, where: TopicPartition, *, committed: bool
    ) -> dict[int, bytes]:
        reader = Reader(client, where, committed=committed)
        found: dict[int, bytes] = {}
        while True:
            found |= await client.persist(lambda: reader.read(max_wait_ms=0))
            end = reader.high_watermark
            # Abandoned transactions must time out before the log is complete.
            if (reader.position >= end > 0 and reader.last_stable == end) or end == 0:
                return found
            await asyncio.sleep(0.05)

    def __str__(self) -> str:
        images = {node_id: node.image.offset for node_id, node in self.cluster.serving.items()}
        return (
            f"{len(self.cluster.layout)} nodes{', secured' if self.secured else ''}, serving with metadata "
            f"{images}; {dict(self.history.counts)}; {self.faults.happened}"
        )


def run_seed(seed: int | str, *, keep_trace: bool = False, **options: object) -> ClusterRun:
    """Run one simulation; a failure names the command that replays it."""
    simulation = Simulation(f"cluster/{seed}", keep_trace=keep_trace)
    run = ClusterRun(simulation, **options)  # type: ignore[arg-type]
    try:
        simulation.run(run.run())
    except BaseException as error:
        error.add_note(f"in {run}")
        error.add_note(f"to replay: make simulate SEED={seed}")
        raise
    return run
