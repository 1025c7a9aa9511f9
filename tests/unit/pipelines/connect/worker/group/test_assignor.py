"""Rebalances: work is spread evenly, moves as little as possible, and waits for lost workers."""

from __future__ import annotations

import random

from moldau.pipelines.connect.storage.types import TaskId
from moldau.pipelines.connect.worker.group.assignor import Assignor
from moldau.pipelines.connect.worker.group.protocol import MemberState, Work


def work(connectors: int, tasks: int = 1) -> Work:
    names = [f"c{number}" for number in range(connectors)]
    return Work(frozenset(names), frozenset(TaskId(name, n) for name in names for n in range(tasks)))


class Group:
    """Members that follow their assignments."""

    def __init__(self, max_delay_ms: int = 0) -> None:
        self.assignor = Assignor(max_delay_ms)
        self.owned: dict[str, Work] = {}
        self.now_ms = 1_000_000
        self.delay_ms = 0

    def rebalance(self, configured: Work) -> int:
        """Rebalance until nothing is revoked; return the number of rounds."""
        for rounds in range(1, 10):
            members = {each: MemberState(f"http://{each}/", 1, owned) for each, owned in self.owned.items()}
            plan = self.assignor.assign(members, configured, self.now_ms)
            self.delay_ms = plan.delay_ms
            running = Work()
            for each in self.owned:
                self.owned[each] = (self.owned[each] - plan.revoked[each]) | plan.assigned[each]
                assert not running & self.owned[each], "two workers run the same"
                running |= self.owned[each]
            if not any(plan.revoked.values()):
                return rounds
        raise AssertionError("the group does not settle")

    def join(self, *names: str) -> None:
        self.owned |= dict.fromkeys(names, Work())

    def counts(self) -> list[tuple[int, int]]:
        return sorted((len(each.connectors), len(each.tasks)) for each in self.owned.values())


def test_work_is_spread_evenly() -> None:
    group = Group()
    group.join("a", "b", "c")
    assert group.rebalance(work(4, 2)) == 1
    assert group.counts() == [(1, 2), (1, 3), (2, 3)]


def test_a_new_worker_gets_its_share_after_it_was_revoked() -> None:
    group = Group()
    group.join("a")
    group.rebalance(work(2, 3))
    before = group.owned["a"]
    group.join("b")
    assert group.rebalance(work(2, 3)) == 2
    assert group.counts() == [(1, 3), (1, 3)]
    assert group.owned["a"] == group.owned["a"] & before


def test_the_work_of_a_lost_worker_waits_for_its_return() -> None:
    group = Group(max_delay_ms=5000)
    group.join("a", "b")
    group.rebalance(work(4))
    lost = group.owned.pop("b")
    group.rebalance(work(4))
    assert (group.counts(), group.delay_ms) == ([(2, 2)], 5000)
    group.now_ms += 1000
    group.rebalance(work(5))
    # A connector that is new does not wait.
    assert (group.counts(), group.delay_ms) == ([(3, 3)], 4000)
    group.join("b")
    group.rebalance(work(5))
    assert (group.owned["b"], group.delay_ms) == (lost, 0)


def test_the_work_of_a_lost_worker_moves_after_the_delay() -> None:
    group = Group(max_delay_ms=5000)
    group.join("a", "b")
    group.rebalance(work(4))
    del group.owned["b"]
    group.rebalance(work(4))
    group.now_ms += 5000
    group.rebalance(work(4))
    assert (group.counts(), group.delay_ms) == ([(4, 4)], 0)


def test_work_that_two_workers_run_is_revoked_from_both() -> None:
    group = Group()
    group.owned = {"a": work(2), "b": work(2)}
    assert group.rebalance(work(2)) == 2
    assert group.counts() == [(1, 1), (1, 1)]


def test_random_groups_settle_and_run_everything_once() -> None:
    for seed in range(200):
        randomness = random.Random(seed)
        group = Group(max_delay_ms=randomness.choice([0, 3000]))
        group.join("m0")
        configured = Work()
        for step in range(20):
            match randomness.randrange(4):
                case 0:
                    group.join(f"m{step}")
                case 1 if len(group.owned) > 1:
                    del group.owned[randomness.choice(sorted(group.owned))]
                case 2:
                    configured = work(randomness.randrange(6), randomness.randrange(1, 4))
                case _:
                    group.now_ms += randomness.randrange(4000)
            group.rebalance(configured)
        group.now_ms += 10_000
        group.rebalance(configured)
        group.rebalance(configured)
        running = [each for owned in group.owned.values() for each in [*owned.connectors, *owned.tasks]]
        assert sorted(map(str, running)) == sorted(map(str, [*configured.connectors, *configured.tasks]))
        for index in (0, 1):
            counts = [each[index] for each in group.counts()]
            assert max(counts) - min(counts) <= 1, seed
