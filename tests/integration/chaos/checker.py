"""Compare the final log with the responses that clients received, in the manner of Jepsen.

Named rules, each a function that returns its violations as messages:

- no acknowledged record is lost: it is stored at the acknowledged offset;
- the records of an idempotent or transactional producer are in the order it wrote them, in every partition
  (a plain producer may have sent a record to an old, blocked leader, and the next one to the new leader);
- neither has duplicates. A record that librdkafka resends in a new epoch is not one: it starts an epoch
  when a later request was refused as out of order, although an earlier, unanswered one may be in the log;
- transactions are atomic: all records of one are visible or none, as acknowledged to the producer;
- records that a reader received are stored at the same offset and were read in order;
- records copied in transactions are copied exactly once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from tests.integration.chaos.history import History, Outcome
from tests.integration.chaos.readers import Log

_SHOWN = 5


#: The producer's id and epoch of a record, by partition and offset.
Producers = Callable[[int, int], tuple[int, int]]


def check(
    history: History, everything: Log, committed: Log, exactly_once: set[str], producers: Producers
) -> list[str]:
    """Return all violations; `exactly_once` are the writers that may have no duplicates."""
    rules = (
        lost(history, everything),
        disordered(everything, exactly_once),
        duplicated(everything, exactly_once, producers),
        torn_transactions(history, committed),
        changed(history, committed),
    )
    return [*history.violations, *(sentence for rule in rules for sentence in _few(rule))]


def lost(history: History, log: Log) -> Iterator[str]:
    by_offset = {partition: dict(records) for partition, records in log.items()}
    present = {partition: {value for _, value in records} for partition, records in log.items()}
    for writer, acknowledged in history.acknowledged.items():
        for each in acknowledged:
            if each.value not in present[each.partition]:
                yield (
                    f"LOST: {each.value!r} was acknowledged to {writer} at {each.offset} of partition "
                    f"{each.partition} and is missing"
                )
            elif each.offset is not None and by_offset[each.partition].get(each.offset) != each.value:
                found = by_offset[each.partition].get(each.offset)
                yield (
                    f"MOVED: {each.value!r} was acknowledged to {writer} at {each.offset} of partition "
                    f"{each.partition}, where {found!r} is"
                )


def disordered(log: Log, in_order: set[str]) -> Iterator[str]:
    for partition, records in log.items():
        latest: dict[str, int] = defaultdict(int)
        met: set[bytes] = set()
        for offset, value in records:
            if value in met:
                continue
            met.add(value)
            writer, number = _origin(value)
            if number < latest[writer] and _kind(writer) in in_order:
                place = f"at {offset} of partition {partition}"
                yield f"ORDER: {value!r} is {place}, after number {latest[writer]}"
            latest[writer] = max(number, latest[writer])


def duplicated(log: Log, exactly_once: set[str], producers: Producers) -> Iterator[str]:
    for partition, records in log.items():
        for value, times in Counter(value for _, value in records).items():
            if times > 1 and _kind(_origin(value)[0]) in exactly_once:
                places = [offset for offset, each in records if each == value]
                if len({producers(partition, offset) for offset in places}) < times:
                    yield f"DUPLICATE: {value!r} is at {places} of partition {partition}"


def torn_transactions(history: History, committed: Log) -> Iterator[str]:
    visible = {(partition, value) for partition, records in committed.items() for _, value in records}
    for name, transaction in history.transactions.items():
        there = [each for each in transaction.values if each in visible]
        if 0 < len(there) < len(transaction.values):
            missing = [each for each in transaction.values if each not in visible]
            yield f"TORN: of transaction {name} {len(there)} records are visible, not {missing[:_SHOWN]}"
        elif transaction.outcome is Outcome.COMMITTED and not there and transaction.values:
            yield f"LOST: transaction {name} was committed and nothing of it is visible"
        elif transaction.outcome is Outcome.ABORTED and there:
            yield f"ABORTED: transaction {name} was aborted and is visible"


def changed(history: History, committed: Log) -> Iterator[str]:
    final = {partition: dict(records) for partition, records in committed.items()}
    for reader, seen in history.seen.items():
        latest: dict[int, int] = defaultdict(lambda: -1)
        for partition, offset, value in seen:
            found = final[partition].get(offset)
            if found != value:
                place = f"at {offset} of partition {partition}"
                yield f"CHANGED: {reader} saw {value!r} {place}, where {found!r} is"
            if offset <= latest[partition]:
                yield f"BACKWARDS: {reader} saw {offset} of partition {partition} after {latest[partition]}"
            latest[partition] = max(offset, latest[partition])


def miscopied(committed: Log, copied: Log) -> list[str]:
    def found() -> Iterator[str]:
        for partition, records in committed.items():
            wanted = Counter(value for _, value in records)
            there = Counter(value for _, value in copied[partition])
            for value, times in (wanted - there).items():
                yield f"NOT COPIED: {value!r} of partition {partition} is missing {times} times in the copy"
            for value, times in (there - wanted).items():
                yield f"COPIED TWICE: {value!r} of partition {partition} is {times} times too many in it"

    return _few(found())


def _origin(value: bytes) -> tuple[str, int]:
    parts = value.decode().split("/")
    return parts[0], int(parts[-1])


def _kind(writer: str) -> str:
    """Return the kind of a writer, which may have had several producers."""
    return writer.split(".")[0]


def _few(sentences: Iterator[str]) -> list[str]:
    found = list(sentences)
    rest = [f"... and {len(found) - _SHOWN} more like the last one"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + rest
