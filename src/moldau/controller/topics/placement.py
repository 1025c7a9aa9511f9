"""The placement of replicas of new partitions.

Leaders are assigned round-robin to the active brokers, from a random start. The followers of a partition are
taken from the same ring: first from the racks, then from the hosts that the partition uses least, so that one
rack or machine holds as few of its replicas as possible. As in Kafka, racks take precedence over everything
else, and active brokers over fenced ones. After each round of leaders the ring of followers is shifted by
one, so that leaders do not always have the same followers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError


class UsableBroker(NamedTuple):
    """A broker that may get new replicas; a fenced one only as a last resort, and never as leader."""

    id: int
    rack: str | None
    host: str
    fenced: bool


def place(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, start: int = 0
) -> list[list[int]]:
    """Return the replicas of each partition, the leader first; INVALID_REPLICATION_FACTOR if impossible."""
    ring = _interleave(brokers)
    active = [broker for broker in ring if not broker.fenced]
    _check(replication_factor, len(ring), len(active))
    if replication_factor == 1:
        ids = [broker.id for broker in active]
        return [[ids[(start + index) % len(ids)]] for index in range(partitions)]
    positions = {broker: position for position, broker in enumerate(ring)}
    placed = []
    for index in range(partitions):
        leader = active[(start + index) % len(active)]
        # Relative to the topic's first partition, so that one round of leaders spreads its followers evenly.
        shift = (start + index // len(active)) % (len(ring) - 1)
        placed.append(_replicas(ring, leader, positions[leader] + 1 + shift, replication_factor))
    return placed


def _check(replication_factor: int, total: int, active: int) -> None:
    problem = None
    if replication_factor <= 0:
        problem = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif active == 0:
        problem = "All brokers are currently fenced."
    elif replication_factor > total:
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{total} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)


def _replicas(ring: Sequence[UsableBroker], leader: UsableBroker, first: int, count: int) -> list[int]:
    chosen = [leader]
    while len(chosen) < count:
        chosen.append(_next(ring, first, chosen))
    return [broker.id for broker in chosen]


def _next(ring: Sequence[UsableBroker], first: int, chosen: Sequence[UsableBroker]) -> UsableBroker:
    """Return the next broker of the ring that shares the fewest racks and hosts with `chosen`."""
    racks = Counter(broker.rack for broker in chosen)
    hosts = Counter(broker.host for broker in chosen)
    taken = {broker.id for broker in chosen}
    best: tuple[tuple[int, bool, int], UsableBroker] | None = None
    for step in range(len(ring)):
        broker = ring[(first + step) % len(ring)]
        if broker.id in taken:
            continue
        price = (racks[broker.rack], broker.fenced, hosts[broker.host])
        if not any(price):
            return broker
        if best is None or price < best[0]:
            best = (price, broker)
    if best is None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "There are more replicas than brokers.")
    return best[1]


def _interleave(brokers: Iterable[UsableBroker]) -> list[UsableBroker]:
    """Order brokers so that neighbours are in different racks and on different hosts, if possible."""
    by_rack: dict[str | None, dict[str, list[UsableBroker]]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.id):
        by_rack.setdefault(broker.rack, {}).setdefault(broker.host, []).append(broker)
    return _round_robin([_round_robin(list(hosts.values())) for hosts in by_rack.values()])


def _round_robin(queues: Sequence[Sequence[UsableBroker]]) -> list[UsableBroker]:
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
