"""What became of the partitions since the last batch: grown, new, deleted, made anew, cut short. Pure.

A topic that was made anew is known by its id, which is kept with the offset. Where that is missing (a
checkpoint of Spark's connector, brokers without ids) the id that was last seen stands in, and else a
partition that ends before the place it was read up to is taken for a new one. An end that moved back under
the same id is a log that was cut, as an unclean leader election does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.base.ids import Uuid
from moldau.pipelines.source import loss
from moldau.pipelines.source.errors import ForeignCheckpoint
from moldau.pipelines.source.loss import Loss
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.subscription import Subscription


@dataclass(frozen=True, slots=True)
class Seen:
    """The subscription at some time: where partitions ended, and which topics that were."""

    positions: Positions
    ids: Mapping[str, Uuid]


@dataclass(frozen=True, slots=True)
class Change:
    losses: list[Loss]
    recreated: frozenset[str]


def is_suspicious(begin: Positions, ids: Mapping[str, Uuid], now: Seen) -> bool:
    """Whether a partition is missing or has shrunk, or a topic is another one, which a look at a broker that
    is behind the others shows, too."""
    shrunk = any(now.positions.get(partition, -1) < position for partition, position in begin.items())
    return shrunk or bool(others(ids, now.ids))


def compare(begin: Positions, ids: Mapping[str, Uuid], before: Seen | None, now: Seen) -> Change:
    """What is lost between the offset that was reached, with its ids, and what the cluster has now."""
    known = ids if before is None else {**before.ids, **ids}
    recreated = others(known, now.ids) & {partition.topic for partition in begin}
    losses = []
    for partition, position in sorted(begin.items()):
        end = now.positions.get(partition)
        seen = None if before is None else before.positions.get(partition)
        if end is None:
            losses.append(loss.deleted(partition, position, seen))
        elif partition.topic in recreated:
            losses.append(loss.recreated(partition, position, end, seen))
        elif end < position and partition.topic not in known:
            recreated.add(partition.topic)
            losses.append(loss.recreated(partition, position, end, seen))
        elif end < position:
            losses.append(loss.truncated(partition, position, end))
    return Change(losses, frozenset(recreated))


def others(before: Mapping[str, Uuid], now: Mapping[str, Uuid]) -> set[str]:
    """The topics that have other ids than before."""
    return {topic for topic, topic_id in before.items() if now.get(topic, topic_id) != topic_id}


def without_strangers(begin: Positions, subscription: Subscription, *, fail: bool) -> Positions:
    """The positions of what is subscribed to; others show that the checkpoint is of another query."""
    strangers = sorted({p.topic for p in begin if not subscription.wants(p)})
    ours = {partition: offset for partition, offset in begin.items() if subscription.wants(partition)}
    if strangers and (fail or not ours):
        raise ForeignCheckpoint(
            f"The checkpoint is of a query that reads {', '.join(strangers)}; this one reads {subscription}. "
            "Give the query a checkpointLocation of its own, or subscribe to the same topics as before"
            + (" (or set failOnDataLoss to false to leave them out from now on)." if ours else ".")
        )
    return ours
