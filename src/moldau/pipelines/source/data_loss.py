"""Records that no longer exist: detected by comparing the requested ranges with the cluster, and reported.

With `failOnDataLoss` a loss stops the query, otherwise it is a warning. The message names every partition
with its offsets and, if known, the number of records.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.errors import DataLoss
from moldau.pipelines.source.planning import Range

logger = logging.getLogger(__name__)

_REMOVED = (
    "To continue without them, set the option failOnDataLoss to false. To keep records longer, raise "
    "retention.ms or retention.bytes of the topic, or run the query more often."
)
_RECREATED = (
    "To read the recreated topic from its beginning, set the option failOnDataLoss to false. To start at "
    "other offsets, use another checkpointLocation and startingOffsets. If the topic has the same records "
    "at the same offsets (the cluster was moved or restored), set the option topicIds to false for one run."
)


class Loss(NamedTuple):
    """`records` counts offsets: an upper bound for compacted and transactional topics."""

    partition: TopicPartition
    reason: str
    records: int | None
    is_recreated: bool = False

    def __str__(self) -> str:
        if self.records is None:
            return f"{self.partition}: {self.reason}"
        return f"{self.partition}: {self.reason} ({self.records} record{'s' * (self.records != 1)})"


def removed(
    wanted: Iterable[Range], earliest: Mapping[TopicPartition, int], recreated_topics: Collection[str] = ()
) -> list[Loss]:
    """Return the ranges deleted by retention, with their partition, or with a topic that was recreated."""
    found: dict[TopicPartition, Loss] = {}
    for partition, begin, end in _whole(wanted):
        first = earliest.get(partition)
        if partition.topic in recreated_topics:
            reason = f"the topic was deleted, with offsets {begin} to {end - 1} not yet read, and recreated"
            found[partition] = Loss(partition, reason, end - begin, is_recreated=True)
        elif first is None:
            reason = f"the partition was deleted with offsets {begin} to {end - 1}"
            found[partition] = Loss(partition, reason, end - begin)
        elif begin < first:
            last = min(first, end)
            reason = f"offsets {begin} to {last - 1} were deleted; the log start offset is {first}"
            found[partition] = Loss(partition, reason, last - begin)
    return list(found.values())


def deleted(partition: TopicPartition, position: int, last_seen: int | None) -> Loss:
    if last_seen is None or last_seen <= position:
        return Loss(partition, f"the partition was deleted; it was read to offset {position}", None)
    reason = f"the partition was deleted with offsets {position} to {last_seen - 1} not yet read"
    return Loss(partition, reason, last_seen - position)


def recreated(partition: TopicPartition, position: int, end: int, last_seen: int | None) -> Loss:
    unread = last_seen - position if last_seen is not None and last_seen > position else None
    reason = f"the topic was deleted and recreated: it was read to offset {position} and now ends at {end}"
    return Loss(partition, reason, unread, is_recreated=True)


def truncated(partition: TopicPartition, position: int, end: int) -> Loss:
    reason = f"offsets {end} to {position - 1}, already read, were truncated: the log now ends at {end}"
    return Loss(partition, reason, position - end)


def beyond_end(partition: TopicPartition, wanted: int, end: int) -> Loss:
    return Loss(partition, f"offset {wanted} is requested, but the partition ends at {end}", None)


def report(losses: list[Loss], *, fail: bool) -> None:
    """Raise `DataLoss`, or log a warning unless `fail`."""
    if not losses:
        return
    known = sum(each.records or 0 for each in losses)
    total = f" {known} records in total." if len(losses) > 1 and known else ""
    text = f"Records no longer exist: {'; '.join(map(str, losses))}.{total}"
    recreated_flags = {each.is_recreated for each in losses}
    if fail:
        advice = [
            *([_REMOVED] if False in recreated_flags else []),
            *([_RECREATED] if True in recreated_flags else []),
        ]
        raise DataLoss(" ".join([text, *advice]))
    beginning = " Recreated topics are read from their beginning." if True in recreated_flags else ""
    logger.warning("%s The query continues because failOnDataLoss is false.%s", text, beginning)


def stop_or_warn(text: str, *, fail: bool, is_recreated: bool = False) -> None:
    """Report a loss that a task has detected."""
    if fail:
        raise DataLoss(f"{text}. {_RECREATED if is_recreated else _REMOVED}")
    logger.warning("%s. The query continues because failOnDataLoss is false.", text)


def _whole(wanted: Iterable[Range]) -> Iterable[Range]:
    """Merge the consecutive ranges of each partition."""
    joined: dict[TopicPartition, Range] = {}
    for each in wanted:
        known = joined.get(each.partition)
        joined[each.partition] = each if known is None else Range(each.partition, known.start, each.end)
    return joined.values()
