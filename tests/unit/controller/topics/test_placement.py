from __future__ import annotations

from collections import Counter

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.topics.placement import UsableBroker, place


def brokers(*described: str) -> list[UsableBroker]:
    """Brokers 0, 1, ... from "rack/host", with a "!" behind fenced ones; "-" is no rack."""
    made = []
    for number, text in enumerate(described):
        rack, _, host = text.rstrip("!").partition("/")
        made.append(UsableBroker(number, None if rack == "-" else rack, host, text.endswith("!")))
    return made


def leaders(placed: list[list[int]]) -> Counter[int]:
    return Counter(replicas[0] for replicas in placed)


def replicas(placed: list[list[int]]) -> Counter[int]:
    return Counter(replica for replicas in placed for replica in replicas)


def test_a_single_broker_gets_all_replicas() -> None:
    assert place(brokers("-/a"), 3, 1, start=5) == [[0], [0], [0]]


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("start", [0, 1, 4711])
def test_leaders_and_replicas_are_spread_evenly(factor: int, start: int) -> None:
    cluster = brokers("-/a", "-/b", "-/c", "-/d", "-/e")
    placed = place(cluster, 100, factor, start)
    assert set(leaders(placed).values()) == {20}
    assert set(replicas(placed).values()) == {20 * factor}
    assert all(len(set(chosen)) == factor for chosen in placed)


@pytest.mark.parametrize("start", range(6))
def test_one_round_of_leaders_is_even_from_any_start(start: int) -> None:
    placed = place(brokers("-/a", "-/b", "-/c"), 3, 2, start)
    assert set(leaders(placed).values()) == {1}
    assert set(replicas(placed).values()) == {2}


def test_leaders_do_not_always_have_the_same_followers() -> None:
    placed = place(brokers("-/a", "-/b", "-/c", "-/d"), 12, 2)
    assert {tuple(chosen) for chosen in placed if chosen[0] == 0} == {(0, 1), (0, 2), (0, 3)}


def test_replicas_are_spread_over_racks_first() -> None:
    cluster = brokers("a/1", "a/2", "b/3", "b/4", "c/5", "c/6")
    placed = place(cluster, 60, 3)
    rack = {broker.id: broker.rack for broker in cluster}
    assert all({rack[replica] for replica in chosen} == {"a", "b", "c"} for chosen in placed)
    assert set(leaders(placed).values()) == {10}
    assert set(replicas(placed).values()) == {30}


def test_replicas_are_spread_over_hosts_next() -> None:
    cluster = brokers("-/x", "-/x", "-/y", "-/y", "-/z", "-/z")
    placed = place(cluster, 30, 3)
    host = {broker.id: broker.host for broker in cluster}
    assert all({host[replica] for replica in chosen} == {"x", "y", "z"} for chosen in placed)


def test_with_fewer_racks_than_replicas_hosts_differ() -> None:
    cluster = brokers("a/1", "a/1", "a/2", "b/3")
    for chosen in place(cluster, 20, 3):
        assert {cluster[replica].rack for replica in chosen} == {"a", "b"}
        assert len({cluster[replica].host for replica in chosen}) == 3


def test_more_replicas_than_racks_are_spread_evenly_over_racks() -> None:
    cluster = brokers("a/1", "a/2", "a/3", "b/4", "b/4", "b/4")
    for chosen in place(cluster, 30, 4):
        assert Counter(cluster[replica].rack for replica in chosen) == {"a": 2, "b": 2}


def test_an_active_broker_on_the_same_host_precedes_a_fenced_one() -> None:
    cluster = brokers("-/x", "-/x", "-/y!")
    assert all(2 not in chosen for chosen in place(cluster, 10, 2))


def test_a_fenced_broker_in_another_rack_precedes_an_active_one_in_the_same_rack() -> None:
    cluster = brokers("a/x", "a/y", "b/z!")
    assert all(2 in chosen for chosen in place(cluster, 10, 2))


def test_fenced_brokers_never_lead() -> None:
    cluster = brokers("-/a", "-/b!", "-/c")
    placed = place(cluster, 10, 3)
    assert leaders(placed).keys() == {0, 2}
    assert place(cluster, 10, 2) == [chosen for chosen in place(cluster, 10, 2) if 1 not in chosen]


@pytest.mark.parametrize(
    ("cluster", "factor", "message"),
    [
        (brokers("-/a"), 2, "The target replication factor of 2 cannot be reached because only 1 broker(s)"),
        (brokers("-/a!"), 1, "All brokers are currently fenced."),
        ([], 1, "All brokers are currently fenced."),
        (brokers("-/a"), 0, "the replication factor must be positive"),
    ],
)
def test_impossible_replication_factors_are_refused(
    cluster: list[UsableBroker], factor: int, message: str
) -> None:
    with pytest.raises(KafkaError) as failure:
        place(cluster, 1, factor)
    assert failure.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert message in str(failure.value)
