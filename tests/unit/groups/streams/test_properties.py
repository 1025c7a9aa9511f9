"""Invariants of streams groups for any sequence of requests.

- No task is active in two members at once, and no process has two roles of a task, as the members see it.
- Epochs of the group, of its target and of a member that stays never go back.
- When nothing changes any more, every task is active in one member, and has as many copies as configured and
  as there are other processes.
- A coordinator that takes over has the same group.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.base.errors import KafkaError
from moldau.groups.modern.group import RefreshDeadline
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.tasks import TaskId
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.streams_group_heartbeat import Topology
from moldau.protocol.stored.metadata import ConfigRecord
from tests.harness.clients.streams import StreamsClient, subtopology
from tests.harness.worlds.coordination import Coordination

NAMES = st.sampled_from([f"m{number}" for number in range(6)])
PROCESSES = st.sampled_from(["p", "q", "r"])
ORDERS = 3
PAYMENTS = 5
TOPOLOGY = Topology(
    epoch=1,
    subtopologies=[
        subtopology("0", sources=("orders",), sinks=("words",)),
        subtopology("1", repartition={"words": 0}, changelogs=("counts",)),
        subtopology("2", sources=("payments",), changelogs=("sums",)),
    ],
)
STATELESS = {TaskId("0", index) for index in range(ORDERS)}
STATEFUL = {TaskId("1", index) for index in range(ORDERS)} | {TaskId("2", index) for index in range(PAYMENTS)}


class StreamsGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordination = Coordination({"group.streams.assignment.interval.ms": "0"})
        for name, partitions in (("orders", ORDERS), ("payments", PAYMENTS)):
            self.coordination.create_topic(name, partitions)
        self.clients: dict[str, StreamsClient] = {}
        self.replicas = 0
        self.restarts = 0
        self.seen_epochs = (0, 0)

    @property
    def group(self) -> StreamsGroup | None:
        return self.coordination.shard.registry.find_as(StreamsGroup, "g")

    # Steps.

    @rule(name=NAMES, process=PROCESSES)
    def join(self, name: str, process: str) -> None:
        if name in self.clients:
            return
        self.restarts += 1
        client = StreamsClient(self.coordination, name, TOPOLOGY, process=process, endpoint=f"{name}:1")
        client.member_id = f"{name}-{self.restarts}"
        self.clients[name] = client
        self._beat(client)

    @rule(name=NAMES)
    def beat(self, name: str) -> None:
        if name in self.clients:
            self._beat(self.clients[name])

    def _beat(self, client: StreamsClient) -> None:
        before = client.epoch
        try:
            missing = client.heartbeat().missing_topics
        except KafkaError:
            client.rejoin()
            return
        assert client.epoch >= before
        for topic in missing.values():
            self.coordination.create_topic(topic.name, topic.num_partitions)

    @rule(name=NAMES, slow=st.booleans())
    def change_pace(self, name: str, slow: bool) -> None:
        client = self.clients.get(name)
        if client is not None and slow:
            client.delays_revocation = True
        elif client is not None:
            client.revoke()

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        client = self.clients.pop(name, None)
        if client is not None and self.group is not None and client.member_id in self.group.members:
            client.leave()

    @rule(name=NAMES)
    def lose_an_answer(self, name: str) -> None:
        """Lose a response: the member repeats its heartbeat with its old epoch."""
        client = self.clients.get(name)
        if client is None or client.epoch == 0:
            return
        epoch, owned = client.epoch, client.owned
        self._beat(client)
        if client.epoch != 0:
            client.lose_last_answer(epoch, owned)

    @rule(replicas=st.integers(0, 2))
    def set_replicas(self, replicas: int) -> None:
        self.replicas = replicas
        delta = MetadataDelta(self.coordination.image)
        delta.replay(
            ConfigRecord(
                resource_type=int(ResourceType.GROUP),
                resource_name="g",
                name="streams.num.standby.replicas",
                value=str(replicas),
            )
        )
        self.coordination.image = delta.apply(self.coordination.image.offset + 1, 1)
        self.coordination.shard.image_changed(delta, self.coordination.image)

    @rule(milliseconds=st.sampled_from([1_000, 20_000, 50_000]))
    def time_passes(self, milliseconds: int) -> None:
        """Let sessions expire: members are fenced, and give up their tasks when they notice."""
        self.coordination.pass_ms(milliseconds)
        for client in self.clients.values():
            if self.group is None or client.member_id not in self.group.members:
                client.rejoin()

    @rule()
    def crash(self) -> None:
        before = self.group
        self.coordination.load()
        assert _stored(before) == _stored(self.group)

    @precondition(lambda self: self.clients)
    @rule()
    def settle(self) -> None:
        for _ in range(20):
            for client in self.clients.values():
                client.revoke()
                self._beat(client)
            self.coordination.pass_ms(1_000)
        self._check_everything_is_assigned()

    def _check_everything_is_assigned(self) -> None:
        group = self.group
        assert group is not None and group.state_name == "Stable"
        clients = self.clients.values()
        assert Counter(task for each in clients for task in each.owned.active) == Counter(
            STATELESS | STATEFUL
        )
        processes = {client.process_id for client in clients}
        copies = Counter(task for each in clients for task in each.owned.standby)
        expected = min(self.replicas, len(processes) - 1)
        assert copies == Counter({task: expected for task in STATEFUL if expected})
        active = [len(each.owned.active) for each in clients]
        if not self.replicas and len(processes) == 1:
            assert max(active) - min(active) <= 1

    # Invariants.

    @invariant()
    def nothing_runs_twice(self) -> None:
        active: set[TaskId] = set()
        roles: set[tuple[str, TaskId]] = set()
        for client in self.clients.values():
            assert active.isdisjoint(client.owned.active)
            active |= client.owned.active
            for task in (*client.owned.active, *client.owned.standby):
                assert (client.process_id, task) not in roles
                roles.add((client.process_id, task))

    @invariant()
    def epochs_never_go_back(self) -> None:
        if self.group is not None:
            epochs = (self.group.epoch, self.group.assignment_epoch)
            assert epochs[0] >= self.seen_epochs[0] and epochs[1] >= self.seen_epochs[1]
            assert epochs[0] >= epochs[1]
            self.seen_epochs = epochs


def _stored(group: StreamsGroup | None) -> object:
    """Return the state of a group that is derived from its records."""
    if group is None:
        return None
    soft = {"processes", "configured", "endpoint_epoch", "shutdown_member_id"}
    known = {name: value for name, value in vars(group).items() if name not in soft}
    known["refresh_deadline"] = RefreshDeadline()
    known["processes"] = (group.processes._active, group.processes._copies)
    known["members"] = {member_id: replace(member) for member_id, member in group.members.items()}
    return known


TestStreamsGroups = StreamsGroupMachine.TestCase
TestStreamsGroups.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
