"""What became of the partitions since the last batch: grown, new, deleted, made anew, cut short. Pure.

A topic that was made anew is known by its id as long as the process lives; after a restart a partition that
ends before the place it was read up to is taken for one. An end that moved back under the same id is a log
that was cut, as an unclean leader election does.
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


def is_suspicious(begin: Positions, now: Seen) -> bool:
    """Whether a partition is missing or has shrunk, which a look at a stale replica shows, too."""
    return any(now.positions.get(partition, -1) < position for partition, position in begin.items())


def compare(begin: Positions, before: Seen | None, now: Seen) -> Change:
    """What is lost between the offset that was reached and what the cluster has now."""
    recreated = {partition.topic for partition in begin if _is_another(partition.topic, before, now)}
    losses = []
    for partition, position in sorted(begin.items()):
        end = now.positions.get(partition)
        seen = None if before is None else before.positions.get(partition)
        if end is None:
            losses.append(loss.deleted(partition, position, seen))
        elif partition.topic in recreated:
            losses.append(loss.recreated(partition, position, end, seen))
        elif end < position and (before is None or partition.topic not in before.ids):
            recreated.add(partition.topic)
            losses.append(loss.recreated(partition, position, end, seen))
        elif end < position:
            losses.append(loss.truncated(partition, position, end))
    return Change(losses, frozenset(recreated))


def _is_another(topic: str, before: Seen | None, now: Seen) -> bool:
    if before is None or topic not in before.ids or topic not in now.ids:
        return False
    return before.ids[topic] != now.ids[topic]


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
