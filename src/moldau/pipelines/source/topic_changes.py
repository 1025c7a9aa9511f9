"""Changes of partitions since the last batch: grown, new, deleted, recreated, truncated. Pure.

A recreated topic has another topic id, which is stored with the offset. If the id is missing (a checkpoint of
Spark's Kafka connector, brokers without topic ids), the id seen last is used; without that, a partition that
ends before the offset it was read to counts as recreated. An end that moved back under the same id is a
truncated log, for example after an unclean leader election.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.base.ids import Uuid
from moldau.pipelines.source import data_loss
from moldau.pipelines.source.data_loss import Loss
from moldau.pipelines.source.errors import ForeignCheckpoint
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.subscription import Subscription


@dataclass(frozen=True, slots=True)
class Seen:
    """A snapshot of the subscription: the ends of partitions and the ids of topics."""

    positions: Positions
    ids: Mapping[str, Uuid]


@dataclass(frozen=True, slots=True)
class Change:
    losses: list[Loss]
    recreated: frozenset[str]


def is_suspicious(begin: Positions, ids: Mapping[str, Uuid], now: Seen) -> bool:
    """Return whether a partition is missing or has shrunk, or a topic has another id. The metadata of a
    broker that lags behind looks the same."""
    shrunk = any(now.positions.get(partition, -1) < position for partition, position in begin.items())
    return shrunk or bool(replaced(ids, now.ids))


def compare(begin: Positions, ids: Mapping[str, Uuid], before: Seen | None, now: Seen) -> Change:
    """Return what was lost between the offset reached, with its topic ids, and the current snapshot."""
    known = ids if before is None else {**before.ids, **ids}
    recreated = replaced(known, now.ids) & {partition.topic for partition in begin}
    losses = []
    for partition, position in sorted(begin.items()):
        end = now.positions.get(partition)
        seen = None if before is None else before.positions.get(partition)
        if end is None:
            losses.append(data_loss.deleted(partition, position, seen))
        elif partition.topic in recreated:
            losses.append(data_loss.recreated(partition, position, end, seen))
        elif end < position and partition.topic not in known:
            recreated.add(partition.topic)
            losses.append(data_loss.recreated(partition, position, end, seen))
        elif end < position:
            losses.append(data_loss.truncated(partition, position, end))
    return Change(losses, frozenset(recreated))


def replaced(before: Mapping[str, Uuid], now: Mapping[str, Uuid]) -> set[str]:
    """Return the topics that have another id than before."""
    return {topic for topic, topic_id in before.items() if now.get(topic, topic_id) != topic_id}


def check_subscribed(begin: Positions, subscription: Subscription, *, fail: bool) -> Positions:
    """Return the positions of subscribed partitions; others mean that the checkpoint is of another query."""
    foreign = sorted({p.topic for p in begin if not subscription.matches(p)})
    ours = {partition: offset for partition, offset in begin.items() if subscription.matches(partition)}
    if foreign and (fail or not ours):
        raise ForeignCheckpoint(
            f"The checkpoint belongs to a query that reads {', '.join(foreign)}; this query reads "
            f"{subscription}. Use another checkpointLocation, or subscribe to the same topics as before"
            + (" (or set failOnDataLoss to false to drop these topics)." if ours else ".")
        )
    return ours
