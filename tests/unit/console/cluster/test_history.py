"""Rates and lag over time, from the differences of snapshots."""

from __future__ import annotations

from moldau.base.ids import ZERO_UUID
from moldau.console.cluster.history import History
from moldau.console.cluster.snapshot import Broker, Partition, Snapshot, Topic


def snapshot(time_s: float, *partitions: Partition, name: str = "orders") -> Snapshot:
    return Snapshot(
        time_ms=int(time_s * 1000),
        topics={name: Topic(name, ZERO_UUID, internal=False, partitions=partitions)},
    )


def partition(index: int, end: int | None, size: int | None = 0) -> Partition:
    return Partition(index, 1, (1, 2), (1, 2), 0, end, size)


def test_rates_are_differences_of_snapshots() -> None:
    history = History()
    history.add(snapshot(10, partition(0, 100, 1000), partition(1, 50, 500)))
    history.add(snapshot(12, partition(0, 160, 3000), partition(1, 50, 100)))
    assert [tuple(each) for each in history.rates] == [(12_000, 30.0, 1000.0)]


def test_a_new_topic_counts_with_all_its_records() -> None:
    history = History()
    history.add(snapshot(10, partition(0, 100)))
    both = snapshot(11, partition(0, 100))
    added = Topic("new", ZERO_UUID, internal=False, partitions=(partition(0, 7),))
    history.add(Snapshot(time_ms=11_000, topics={**both.topics, "new": added}))
    assert history.rates[-1].messages == 7


def test_topics_have_rates_of_their_own() -> None:
    history = History()
    assert history.topic_rate("orders") is None
    history.add(snapshot(10, partition(0, 100), partition(1, 50)))
    assert history.topic_rate("orders") is None
    history.add(snapshot(12, partition(0, 160), partition(1, 54)))
    assert (history.topic_rate("orders"), history.topic_rate("other")) == (32.0, None)
    history.add(snapshot(12.1, partition(0, 999)))
    assert history.topic_rate("orders") == 32.0


def test_a_leader_that_does_not_answer_leaves_no_spike() -> None:
    history = History()
    history.add(snapshot(10, partition(0, 100)))
    history.add(snapshot(12, partition(0, None, None)))
    history.add(snapshot(14, partition(0, 104)))
    assert [each.messages for each in history.rates] == [0, 2]


def test_snapshots_in_quick_succession_are_one() -> None:
    history = History()
    history.add(snapshot(10, partition(0, 100)))
    history.add(snapshot(10.1, partition(0, 110)))
    history.add(snapshot(12, partition(0, 120)))
    assert [each.messages for each in history.rates] == [10]


def test_health_names_the_worst_problem() -> None:
    online = Broker(1, "a", 1, None, online=True)
    offline = Broker(2, "b", 1, None, online=False)
    behind = Partition(0, 1, (1, 2), (1,))
    lost = Partition(0, -1, (1, 2), ())
    healthy = snapshot(1, partition(0, 1))
    assert Snapshot(brokers=(online,), topics=healthy.topics).health[0] == "Healthy"
    assert Snapshot(brokers=(online,), topics=snapshot(1, behind).topics).health[0] == "Degraded"
    assert "1 of 2 brokers" in Snapshot(brokers=(online, offline), topics=healthy.topics).health[1]
    assert Snapshot(brokers=(online,), topics=snapshot(1, lost).topics).health[0] == "Critical"
    assert Snapshot(error="refused").health == ("Unreachable", "refused")
