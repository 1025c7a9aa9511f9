"""What is not there any more: found by comparing what was to be read with what the cluster has, and worded.

With `failOnDataLoss` it stops the query, without it is a warning that says the same. Either way every
partition is named, with the offsets and, as far as they are known, the number of records.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.errors import DataLoss
from moldau.pipelines.source.planning import Range

_log = logging.getLogger(__name__)

_REMOVED = (
    "To go on without them set the option failOnDataLoss to false; to keep records longer, raise the topic's "
    "retention.ms or retention.bytes, or let the query run more often."
)
_MADE_ANEW = (
    "To read the new topic from its beginning set the option failOnDataLoss to false; to begin elsewhere "
    "give the query a checkpointLocation of its own and startingOffsets. If the same records lie there at "
    "the same offsets (a cluster that was moved or restored), set the option topicIds to false for one run."
)


class Loss(NamedTuple):
    """`records` counts offsets: an upper bound for compacted and transactional topics."""

    partition: TopicPartition
    reason: str
    records: int | None
    made_anew: bool = False

    def __str__(self) -> str:
        if self.records is None:
            return f"{self.partition}: {self.reason}"
        return f"{self.partition}: {self.reason} ({self.records} record{'s' * (self.records != 1)})"


def removed(
    wanted: Iterable[Range], earliest: Mapping[TopicPartition, int], made_anew: Collection[str] = ()
) -> list[Loss]:
    """What retention took away, or with it the whole partition, or the topic that was there before."""
    found: dict[TopicPartition, Loss] = {}
    for partition, begin, end in _whole(wanted):
        first = earliest.get(partition)
        if partition.topic in made_anew:
            reason = (
                f"the topic was deleted, with its offsets {begin} to {end - 1}, not read yet, and made anew"
            )
            found[partition] = Loss(partition, reason, end - begin, made_anew=True)
        elif first is None:
            reason = f"the partition is gone, and with it offsets {begin} to {end - 1}"
            found[partition] = Loss(partition, reason, end - begin)
        elif begin < first:
            last = min(first, end)
            reason = f"offsets {begin} to {last - 1} were removed, the log begins at {first} now"
            found[partition] = Loss(partition, reason, last - begin)
    return list(found.values())


def deleted(partition: TopicPartition, position: int, last_seen: int | None) -> Loss:
    if last_seen is None or last_seen <= position:
        return Loss(partition, f"the partition was deleted; it was read up to offset {position}", None)
    reason = f"the partition was deleted, and with it offsets {position} to {last_seen - 1}, not read yet"
    return Loss(partition, reason, last_seen - position)


def recreated(partition: TopicPartition, position: int, end: int, last_seen: int | None) -> Loss:
    unread = last_seen - position if last_seen is not None and last_seen > position else None
    reason = f"the topic was deleted and made anew: it was read up to offset {position} and now ends at {end}"
    return Loss(partition, reason, unread, made_anew=True)


def truncated(partition: TopicPartition, position: int, end: int) -> Loss:
    reason = f"offsets {end} to {position - 1}, read already, are gone: the log ends at {end} now"
    return Loss(partition, reason, position - end)


def beyond_end(partition: TopicPartition, wanted: int, end: int) -> Loss:
    return Loss(partition, f"offset {wanted} is asked for, and the partition ends at {end}", None)


def report(losses: list[Loss], *, fail: bool) -> None:
    """Stop, or warn."""
    if not losses:
        return
    known = sum(each.records or 0 for each in losses)
    total = f" Together {known} records." if len(losses) > 1 and known else ""
    text = f"Records are not there any more: {'; '.join(map(str, losses))}.{total}"
    anew = {each.made_anew for each in losses}
    if fail:
        advice = [*([_REMOVED] if False in anew else []), *([_MADE_ANEW] if True in anew else [])]
        raise DataLoss(" ".join([text, *advice]))
    beginning = " Topics made anew are read from their beginning." if True in anew else ""
    _log.warning("%s Reading goes on, as failOnDataLoss is false.%s", text, beginning)


def stop_or_warn(text: str, *, fail: bool, made_anew: bool = False) -> None:
    """The same for what a task finds out."""
    if fail:
        raise DataLoss(f"{text}. {_MADE_ANEW if made_anew else _REMOVED}")
    _log.warning("%s. Reading goes on, as failOnDataLoss is false.", text)


def _whole(wanted: Iterable[Range]) -> Iterable[Range]:
    """The ranges of a partition as one: they lie one behind the other."""
    joined: dict[TopicPartition, Range] = {}
    for each in wanted:
        known = joined.get(each.partition)
        joined[each.partition] = each if known is None else Range(each.partition, known.start, each.end)
    return joined.values()
