"""Classic groups against a model: whatever clients do, and however the log fails, three things hold.

No partition belongs to two members of one generation. No member is kept that has not been heard from for its
session. What the group has committed is what was last committed, and after a change of leaders what was last
acknowledged. The log refuses, commits late, and loses what it had not committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.states import ClassicState
from moldau.statemachine.decision import Promise
from tests.harness.clients.classic import SESSION_MS, ClassicClient, fetched
from tests.harness.worlds.coordination import Coordination

PARTITIONS = 6
CLIENTS = 4
ACTIONS = (
    *("join", "join", "sync", "sync", "heartbeat", "leave", "commit", "restart", "wait"),
    *("refuse", "hold_back", "let_go", "change_leaders"),
)
Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, CLIENTS - 1), st.integers(0, 9)), max_size=60
)


class Chaos:
    def __init__(self) -> None:
        self.coordination = Coordination({"group.initial.rebalance.delay.ms": "0"})
        self.coordination.create_topic("orders", PARTITIONS)
        self.clients = [
            ClassicClient(self.coordination, f"c{number}", instance="static" if number == 0 else None)
            for number in range(CLIENTS)
        ]
        #: What was committed, and what of it was acknowledged.
        self.offsets: dict[tuple[str, int], int] = {}
        self.acknowledged: dict[tuple[str, int], int] = {}
        #: By generation, partition -> member id.
        self.owners: dict[int, dict[str, str]] = {}
        self.heard_ms: dict[str, int] = {}
        self.waiting: list[tuple[ClassicClient, Promise[Any], Callable[[Any], None]]] = []

    @property
    def group(self) -> ClassicGroup | None:
        return self.coordination.shard.registry.find_as(ClassicGroup, "g")

    def step(self, action: str, number: int, amount: int) -> None:
        getattr(self, action)(self.clients[number], amount)
        self.collect()
        self.check()

    def collect(self) -> None:
        waiting, self.waiting = self.waiting, []
        for client, promise, then in waiting:
            if not promise.settled:
                self.waiting.append((client, promise, then))
                continue
            self.heard_ms[client.member_id] = self.coordination.clock.time_ms()
            if promise.error is None and not getattr(promise.value, "error_code", ErrorCode.NONE):
                then(promise.value)

    def expect(self, client: ClassicClient, promise: Promise[Any], then: Callable[[Any], None]) -> None:
        self.heard_ms[client.member_id] = self.coordination.clock.time_ms()
        self.waiting.append((client, promise, then))

    # Steps.

    def join(self, client: ClassicClient, _: int) -> None:
        self.expect(client, client.join(), lambda answer: None)

    def sync(self, client: ClassicClient, _: int) -> None:
        members = client.joined.members if client.joined is not None else []
        assignments: dict[str, list[str]] = {each.member_id: [] for each in members}
        for partition in range(PARTITIONS if members else 0):
            assignments[members[partition % len(members)].member_id].append(str(partition))
        given_out = {member_id: " ".join(parts).encode() for member_id, parts in assignments.items()}
        generation, member_id = client.generation, client.member_id

        def own(answer: Any) -> None:
            owners = self.owners.setdefault(generation, {})
            for partition in answer.assignment.decode().split():
                assert owners.setdefault(partition, member_id) == member_id

        self.expect(client, client.sync(given_out), own)

    def heartbeat(self, client: ClassicClient, _: int) -> None:
        if client.heartbeat().error is None:
            self.heard_ms[client.member_id] = self.coordination.clock.time_ms()

    def leave(self, client: ClassicClient, _: int) -> None:
        client.leave()

    def commit(self, client: ClassicClient, amount: int) -> None:
        promise = client.commit("orders", amount % PARTITIONS, amount)
        if promise.error is not None:
            return
        key = ("orders", amount % PARTITIONS)
        self.offsets[key] = amount
        self.heard_ms[client.member_id] = self.coordination.clock.time_ms()
        self.waiting.append((client, promise, lambda answer: self.acknowledged.update({key: amount})))

    def restart(self, client: ClassicClient, _: int) -> None:
        client.member_id, client.generation, client.joined = "", -1, None

    def wait(self, client: ClassicClient, amount: int) -> None:
        self.coordination.pass_ms(amount * 1000)

    def refuse(self, client: ClassicClient, amount: int) -> None:
        """Let the log refuse appends for a while."""
        refusing = self.coordination.log.refusal is None and amount < 5
        self.coordination.log.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if refusing else None

    def hold_back(self, client: ClassicClient, _: int) -> None:
        """Stop committing."""
        self.coordination.commits = False

    def let_go(self, client: ClassicClient, _: int) -> None:
        self.coordination.commits = True
        self.coordination.commit()

    def change_leaders(self, client: ClassicClient, _: int) -> None:
        self.collect()
        self.coordination.lose_leadership()
        self.waiting.clear()
        self.offsets = dict(self.acknowledged)
        # Generations that were not stored are given again.
        group = self.group
        stored = -1 if group is None else group.generation
        self.owners = {number: owners for number, owners in self.owners.items() if number <= stored}
        for member_id in group.members if group is not None else ():
            self.heard_ms[member_id] = self.coordination.clock.time_ms()

    # Invariants.

    def check(self) -> None:
        assert fetched(self.coordination.shard, "g") == self.offsets
        group = self.group
        if group is None:
            return
        now = self.coordination.clock.time_ms()
        if self.coordination.log.refusal is None:
            for member_id in group.members:
                if member_id not in group.awaiting_join and member_id not in group.awaiting_sync:
                    assert now - self.heard_ms.get(member_id, now) <= SESSION_MS + 500
        assert (group.state is ClassicState.EMPTY) <= (not group.members)
        assert set(group.awaiting_join) <= set(group.members)
        assert set(group.awaiting_sync) <= set(group.members)
        assert group.leader is None or group.leader in group.members


@given(STEPS)
@settings(max_examples=300, deadline=None)
def test_invariants_hold_for_any_sequence_of_requests_and_log_failures(steps: list[Step]) -> None:
    chaos = Chaos()
    for step in steps:
        chaos.step(*step)


@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_clients_that_keep_retrying_reach_a_stable_group(steps: list[Step]) -> None:
    chaos = Chaos()
    for step in steps:
        chaos.step(*step)
    chaos.coordination.log.refusal = None
    chaos.let_go(chaos.clients[0], 0)
    for client in chaos.clients:
        client.member_id, client.generation, client.joined = "", -1, None
    for _ in range(12):
        for client in chaos.clients:
            answer = client.heartbeat()
            if answer.error is not None or answer.value.error_code != ErrorCode.NONE:
                known = client.member_id in (chaos.group.members if chaos.group is not None else ())
                if not known:
                    client.member_id = ""
                chaos.join(client, 0)
        chaos.collect()
        chaos.coordination.pass_ms(5000)
        for client in sorted(chaos.clients, key=lambda each: each.leads):
            chaos.sync(client, 0)
        chaos.collect()
    group = chaos.group
    assert group is not None and group.state is ClassicState.STABLE
    assert set(group.members) == {client.member_id for client in chaos.clients}
    owners = chaos.owners[group.generation]
    assert set(owners) == {str(partition) for partition in range(PARTITIONS)}
