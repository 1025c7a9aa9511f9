"""The history of a cluster's clients: what they sent and received. A contradiction is a violation.

Invariants that clients can observe, by name:

- *what was read stays*: an offset always has the same record, for every reader at any time
- *the high watermark never goes back for a consumer*: the reported end of a partition never decreases
- *acknowledged records are readable*: with `acks=all`, at the acknowledged offset
- *nothing is made up*: every record was sent by a client
- *an idempotent producer's records are stored once, in order*
- *transactions are atomic*: all records and offsets of a transaction are visible, or none
- *committed offsets never go back*
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum

from moldau.base.ids import TopicPartition


class Outcome(Enum):
    """`UNKNOWN`: no client received the outcome."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(eq=False)
class Transaction:
    name: str
    values: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    #: The offset that it commits for its group.
    offset: int | None = None
    outcome: Outcome = Outcome.OPEN


class History:
    def __init__(self) -> None:
        self.stopping = False
        self.sent: dict[bytes, TopicPartition] = {}
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        #: By idempotent producer and partition: the values sent, in order.
        self.orders: dict[tuple[str, TopicPartition], list[bytes]] = defaultdict(list)
        #: The acknowledged ones among them, with an offset or as a duplicate.
        self.surely_there: set[bytes] = set()
        self.transactions: dict[bytes, Transaction] = {}
        self.by_producer: dict[str, list[Transaction]] = defaultdict(list)
        self._seen: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        self._shown_as_committed: set[bytes] = set()
        #: By group and partition: the last acknowledged and the last requested offset.
        self.committed_offsets: dict[tuple[str, TopicPartition], int] = {}
        self.wanted_offsets: dict[tuple[str, TopicPartition], int] = {}
        self.counts: dict[str, int] = defaultdict(int)

    # Requests.

    def sends(self, topic_partition: TopicPartition, value: bytes, producer: str | None = None) -> None:
        self.sent[value] = topic_partition
        if producer is not None:
            self.orders[producer, topic_partition].append(value)

    def acknowledge(self, topic_partition: TopicPartition, offset: int, value: bytes) -> None:
        """`offset` is negative if only a duplicate was acknowledged."""
        self.counts["acknowledged"] += 1
        self.surely_there.add(value)
        if offset >= 0:
            before = self.acknowledged[topic_partition].setdefault(offset, value)
            assert before == value, (
                f"acknowledged records are readable: {topic_partition} {offset} is {before!r} and {value!r}"
            )

    # Responses.

    def reads(
        self, topic_partition: TopicPartition, offset: int, value: bytes, *, committed: bool = False
    ) -> None:
        self.counts["read"] += 1
        before = self._seen[topic_partition].setdefault(offset, value)
        assert before == value, f"what was read stays: {topic_partition} {offset}, {before!r}, now {value!r}"
        assert self.sent.get(value) == topic_partition, f"nothing is made up: {topic_partition} {value!r}"
        if committed and value in self.transactions:
            self._shown_as_committed.add(value)
            assert self.transactions[value].outcome is not Outcome.ABORTED, (
                f"transactions are atomic: {value!r} of an aborted one was shown"
            )

    def end_told(self, topic_partition: TopicPartition, end: int, before: int) -> int:
        """`before` is the previous end that the same consumer received."""
        assert end >= before, (
            f"the high watermark never goes back for a consumer: {topic_partition} from {before} to {end}"
        )
        return end

    def offset_told(self, group: str, topic_partition: TopicPartition, offset: int) -> None:
        key = (group, topic_partition)
        floor, ceiling = self.committed_offsets.get(key, -1), self.wanted_offsets.get(key, -1)
        assert offset >= floor, (
            f"committed offsets never go back: {group} {topic_partition} from {floor} to {offset}"
        )
        assert offset <= ceiling, f"nothing is made up: {group} {topic_partition} committed {offset}"
        self.committed_offsets[key] = offset

    # The end.

    def check_end(
        self,
        everything: dict[TopicPartition, dict[int, bytes]],
        committed: dict[TopicPartition, dict[int, bytes]],
        offsets: dict[str, int],
    ) -> None:
        """`everything` are all records at the end, `committed` those visible to `read_committed`, `offsets`
        the offsets of the groups that transactions write."""
        for topic_partition, acknowledged in self.acknowledged.items():
            for offset, value in acknowledged.items():
                found = everything[topic_partition].get(offset)
                assert found == value, (
                    f"acknowledged records are readable: {topic_partition} {offset} {value!r} is {found!r}"
                )
        for topic_partition, seen in self._seen.items():
            for offset, value in seen.items():
                assert everything[topic_partition].get(offset) == value, (
                    f"what was read stays: {topic_partition} {offset} {value!r}"
                )
        self._check_orders(everything)
        self._check_transactions(committed, offsets)

    def _check_orders(self, everything: dict[TopicPartition, dict[int, bytes]]) -> None:
        for (producer, topic_partition), order in self.orders.items():
            mine = set(order)
            found = [value for _, value in sorted(everything[topic_partition].items()) if value in mine]
            expected = [value for value in order if value in set(found)]
            assert found == expected, (
                "an idempotent producer's records are stored once, in order:"
                f" {producer} {topic_partition} {found} of {order}"
            )
            lost = [value for value in order if value in self.surely_there and value not in set(found)]
            assert not lost, f"acknowledged records are readable: {topic_partition} lost {lost}"

    def _check_transactions(
        self, committed: dict[TopicPartition, dict[int, bytes]], offsets: dict[str, int]
    ) -> None:
        visible = {value for values in committed.values() for value in values.values()}
        gone = self._shown_as_committed - visible
        assert not gone, f"transactions are atomic: {gone} was shown and is not committed"
        for producer, transactions in self.by_producer.items():
            offset = -1
            for transaction in transactions:
                there = [value in visible for _, value in transaction.values]
                assert all(there) or not any(there), f"transactions are atomic: half of {transaction}"
                if any(there) if there else transaction.outcome is Outcome.COMMITTED:
                    assert transaction.outcome is not Outcome.ABORTED, (
                        f"transactions are atomic: {transaction}"
                    )
                    offset = offset if transaction.offset is None else transaction.offset
                else:
                    assert transaction.outcome is not Outcome.COMMITTED, (
                        f"transactions are atomic: {transaction} is not there"
                    )
            assert offsets.get(producer, -1) == offset, (
                f"transactions are atomic: {producer} ends at offset {offsets.get(producer)}, not {offset}"
            )
