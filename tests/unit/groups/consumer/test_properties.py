"""Invariants of consumer groups for any sequence of requests.

- No partition is owned by two members at once, as the members themselves see it.
- Epochs of the group, of its target and of a member that stays never go back.
- When nothing changes any more, every partition of a subscribed topic is assigned to a subscriber.
- A coordinator that takes over has the same group.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.modern.group import RefreshDeadline
from moldau.groups.modern.regex import resolve_regexes
from tests.harness.clients.consumer import ConsumerClient
from tests.harness.worlds.coordination import Coordination

NAMES = st.sampled_from([f"m{number}" for number in range(6)])
TOPICS = ("orders", "payments", "returns")
SUBSCRIPTIONS = st.one_of(
    st.lists(st.sampled_from(TOPICS), unique=True).map(lambda topics: (topics, "")),
    st.sampled_from(["orders|returns", "pay.*", ".*"]).map(lambda regex: ([], regex)),
)


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordination = Coordination({"group.consumer.assignment.interval.ms": "0"})
        self.partitions = dict.fromkeys(TOPICS, 0)
        self.clients: dict[str, ConsumerClient] = {}
        self.restarts = 0
        self.seen_epochs = (0, 0)

    @property
    def group(self) -> ConsumerGroup | None:
        return self.coordination.shard.registry.find_as(ConsumerGroup, "g")

    # Steps.

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 4))
    def add_partitions(self, topic: str, more: int) -> None:
        self.partitions[topic] += more
        self.coordination.create_topic(topic, self.partitions[topic])

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, assignor=st.sampled_from([None, "uniform", "range"]))
    def join(self, name: str, subscription: tuple[list[str], str], assignor: str | None) -> None:
        if name in self.clients:
            return
        self.restarts += 1
        topics, regex = subscription
        client = ConsumerClient(self.coordination, name, topics=topics, regex=regex, assignor=assignor)
        client.member_id = f"{name}-{self.restarts}"
        self.clients[name] = client
        client.heartbeat()

    @rule(name=NAMES)
    def beat(self, name: str) -> None:
        if name in self.clients:
            self._beat(self.clients[name])

    def _beat(self, client: ConsumerClient) -> None:
        before = client.epoch
        try:
            client.heartbeat()
        except KafkaError:
            client.rejoin()
            return
        assert client.epoch >= before

    @rule(name=NAMES, slow=st.booleans())
    def change_pace(self, name: str, slow: bool) -> None:
        client = self.clients.get(name)
        if client is not None and slow:
            client.delays_revocation = True
        elif client is not None:
            client.revoke()

    @rule(name=NAMES, subscription=SUBSCRIPTIONS)
    def subscribe(self, name: str, subscription: tuple[list[str], str]) -> None:
        if name in self.clients:
            self.clients[name].subscribe(*subscription)
            self._beat(self.clients[name])

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        client = self.clients.pop(name, None)
        if client is not None and self.group is not None and client.member_id in self.group.members:
            client.leave()

    @rule(name=NAMES)
    def lose_an_answer(self, name: str) -> None:
        """Lose a response: the member sends a full heartbeat with its old epoch."""
        client = self.clients.get(name)
        if client is None or client.epoch == 0:
            return
        epoch, owned = client.epoch, dict(client.owned)
        self._beat(client)
        if client.epoch != 0:
            client.epoch, client.owned = epoch, owned
            client.subscribe(client.topics, client.regex)

    @rule(milliseconds=st.sampled_from([1_000, 20_000, 50_000]))
    def time_passes(self, milliseconds: int) -> None:
        """Let sessions expire: members are fenced, and give up their partitions when they notice."""
        self.coordination.pass_ms(milliseconds)
        for client in self.clients.values():
            if self.group is None or client.member_id not in self.group.members:
                client.rejoin()

    @rule()
    def resolve(self) -> None:
        effects = list(self.coordination.effects)
        self.coordination.effects.clear()
        for each in effects:
            found = resolve_regexes(each)
            self.coordination.answer(
                lambda shard, each=each, found=found: shard.regexes_resolved(each.group_id, found)
            )

    @rule()
    def crash(self) -> None:
        before = self.group
        self.coordination.effects.clear()
        self.coordination.load()
        assert _stored(before) == _stored(self.group)

    @precondition(lambda self: self.clients)
    @rule()
    def settle(self) -> None:
        for _ in range(26):
            self.resolve()
            for client in self.clients.values():
                client.revoke()
                self._beat(client)
            self.coordination.pass_ms(1_000)
        self._check_everything_is_assigned()

    def _check_everything_is_assigned(self) -> None:
        group = self.group
        assert group is not None and group.state_name == "Stable"
        owned = self._owners()
        for topic, count in self.partitions.items():
            subscribers = {name for name, client in self.clients.items() if _subscribes(client, topic)}
            for partition in range(count if subscribers else 0):
                owner = owned.get((self.coordination.image.topics.by_name[topic].id, partition))
                assert owner in subscribers, (topic, partition, owner)

    # Invariants.

    @invariant()
    def nothing_is_owned_twice(self) -> None:
        self._owners()

    def _owners(self) -> dict[tuple[TopicId, int], str]:
        owners: dict[tuple[TopicId, int], str] = {}
        for name, client in self.clients.items():
            for topic_id, partitions in client.owned.items():
                for partition in partitions:
                    assert (topic_id, partition) not in owners, (partition, name)
                    owners[topic_id, partition] = name
        return owners

    @invariant()
    def epochs_never_go_back(self) -> None:
        if self.group is not None:
            epochs = (self.group.epoch, self.group.assignment_epoch)
            assert epochs[0] >= self.seen_epochs[0] and epochs[1] >= self.seen_epochs[1]
            assert epochs[0] >= epochs[1]
            self.seen_epochs = epochs


def _subscribes(client: ConsumerClient, topic: str) -> bool:
    patterns = {"orders|returns": ("orders", "returns"), "pay.*": ("payments",), ".*": TOPICS, "": ()}
    return topic in (client.topics or ()) or topic in patterns[client.regex or ""]


def _stored(group: ConsumerGroup | None) -> object:
    if group is None:
        return None
    known = {name: value for name, value in vars(group).items() if name != "partition_epochs"}
    known["refresh_deadline"], known["resolving_regexes"] = RefreshDeadline(), False
    known["epochs"] = group.partition_epochs._epochs
    known["members"] = {member_id: replace(member) for member_id, member in group.members.items()}
    return known


def test_new_member_without_subscription_is_assigned_nothing() -> None:
    """The target computed at its first heartbeat covers a regular expression resolved before."""
    machine = ConsumerGroupMachine()
    machine.join("m1", ([], ""), None)
    machine.time_passes(50_000)
    machine.add_partitions("payments", 1)
    machine.join("m0", ([], "pay.*"), None)
    machine.settle()


TestConsumerGroups = ConsumerGroupMachine.TestCase
TestConsumerGroups.settings = settings(
    max_examples=80,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
