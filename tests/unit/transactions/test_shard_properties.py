"""For any sequence of events, `read_committed` shows all of a transaction or nothing, in the order sent.

Producers send, commit, abort, are replaced and run out of time; coordinators and partitions crash, markers
are late. The model knows which ends were granted: those transactions must be seen, all others must not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from hypothesis.strategies import booleans, integers, sampled_from

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.statemachine.coordinator_records import Producer
from moldau.storage.producers.verification import Guard
from moldau.transactions.end_txn import EndTxn
from moldau.transactions.init_producer_id import InitProducerId
from tests.harness.worlds.transactions import TransactionWorld

PARTITIONS = [TopicPartition("orders", index) for index in range(3)]
IDS = ("a", "b")
#: Errors that a producer may get at any time; it then aborts its transaction.
EXPECTED = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}


class Sender:
    def __init__(self, transactional_id: str, producer: Producer) -> None:
        self.transactional_id = transactional_id
        self.producer = producer
        self.sent: list[tuple[TopicPartition, bytes]] = []
        self.sequences: dict[TopicPartition, int] = {}
        self.ends = 0


class Question(NamedTuple):
    sender: Sender
    producer: Producer
    partition: TopicPartition
    sequence: int
    guard: Guard | None
    #: The number of transactions its producer had ended before.
    ends: int


class Atomicity(RuleBasedStateMachine):
    senders = Bundle("senders")
    questions = Bundle("questions")
    level = 2

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.world = TransactionWorld(Path(self._folder.name), self.level)
        self.committed: dict[TopicPartition, list[bytes]] = {each: [] for each in PARTITIONS}
        self.count = 0

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(target=senders, transactional_id=sampled_from(IDS))
    def begin(self, transactional_id: str) -> Sender:
        request = InitProducerId(transactional_id, 10_000)
        for _ in range(3):
            answer = self._try(lambda: self.world.decide(lambda shard: shard.init_producer_id(request)))
            if answer is not None and answer.error is ErrorCode.NONE:
                return Sender(transactional_id, Producer(answer.producer_id, answer.producer_epoch))
            self.world.holds = False
            self.world.deliver()
        raise AssertionError(f"{transactional_id} cannot begin: {answer}")

    @rule(sender=senders, partition=sampled_from(PARTITIONS))
    def send(self, sender: Sender, partition: TopicPartition) -> None:
        self.count += 1
        value, sequence = b"%d" % self.count, sender.sequences.get(partition, 0)
        if not self._joined(sender, partition):
            return

        def write() -> bool:
            self.world.send(
                sender.transactional_id, sender.producer, partition, sequence, value, implicit=self.level >= 2
            )
            return True

        if self._try(write):
            sender.sequences[partition] = sequence + 1
            sender.sent.append((partition, value))

    @rule(target=questions, sender=senders, partition=sampled_from(PARTITIONS))
    def ask(self, sender: Sender, partition: TopicPartition) -> Question:
        """Verify now and write later."""
        sequence = sender.sequences.get(partition, 0)
        if not self._joined(sender, partition):
            return Question(sender, sender.producer, partition, sequence, None, -1)

        def asked() -> Question:
            guard = self.world.verify(
                sender.transactional_id, sender.producer, partition, sequence, implicit=self.level >= 2
            )
            return Question(sender, sender.producer, partition, sequence, guard, sender.ends)

        return self._try(asked) or Question(sender, sender.producer, partition, sequence, None, sender.ends)

    @rule(question=consumes(questions))
    def write_what_was_asked(self, question: Question) -> None:
        sender, producer, partition, sequence, guard, ends = question
        if ends != sender.ends and self.world.held:
            # A producer ends a transaction when all its batches are answered; a late one is later than that.
            return
        self.count += 1
        value = b"%d" % self.count

        def write() -> bool:
            self.world.write(producer, partition, sequence, value, guard)
            return True

        known = sender.sequences.get(partition, 0)
        if self._try(write) and (producer, sequence) == (sender.producer, known):
            sender.sequences[partition] = sequence + 1
            sender.sent.append((partition, value))

    @rule(sender=senders, committed=booleans())
    def end(self, sender: Sender, committed: bool) -> None:
        request = EndTxn(sender.transactional_id, sender.producer, committed, 2 if self.level >= 2 else 0)
        answer = self._try(lambda: self.world.decide(lambda shard: shard.end_transaction(request)))
        if answer is None:
            return
        if committed:
            for partition, value in sender.sent:
                self.committed[partition].append(value)
        sender.sent = []
        sender.ends += 1
        if self.level >= 2:
            sender.producer = Producer(answer.producer_id, answer.producer_epoch)
            sender.sequences = {}

    @rule(sender=consumes(senders))
    def vanish(self, sender: Sender) -> None:
        """Stop a producer for good."""

    @rule()
    def hold_markers(self) -> None:
        self.world.holds = True

    @rule()
    def deliver_markers(self) -> None:
        self.world.holds = False
        self.world.deliver()

    @rule(partition=sampled_from(PARTITIONS))
    def deliver_some(self, partition: TopicPartition) -> None:
        for markers in self.world.held:
            if partition in markers.partitions:
                self.world.write_markers(markers, [partition])

    @rule(back=integers(1, 3))
    def a_marker_comes_late(self, back: int) -> None:
        """Deliver a marker late; only an epoch per transaction lets a partition detect it."""
        if self.level >= 2 and len(self.world.requested) >= back:
            markers = self.world.requested[-back]
            for partition in markers.partitions:
                self._try(lambda each=partition: self.world.write_markers(markers, [each]))

    @rule()
    def crash_of_the_coordinator(self) -> None:
        self.world.take_over()

    @rule()
    def crash_of_the_partitions(self) -> None:
        self.world.restart_partitions()

    @rule(milliseconds=integers(1, 12_000))
    def time_passes(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)

    @invariant()
    def only_what_was_committed_is_seen(self) -> None:
        """Check order and completeness; markers of decided transactions may be pending."""
        for partition in PARTITIONS:
            seen = self.world.committed(partition)
            granted = self.committed[partition]
            assert all(value in granted for value in seen)
            assert seen == sorted(seen, key=int)

    @rule()
    def in_the_end_all_of_it_is(self) -> None:
        self.deliver_markers()
        self.world.pass_time(10_001)
        for partition in PARTITIONS:
            log = self.world.log(partition)
            assert log.last_stable_offset == log.log_end_offset
            assert self.world.committed(partition) == sorted(self.committed[partition], key=int)

    def _joined(self, sender: Sender, partition: TopicPartition) -> bool:
        """Check that a classic producer writes only to partitions that it has added."""
        if self.level >= 2:
            return True

        def add() -> bool:
            self.world.decide(
                lambda shard: shard.add_partitions(
                    sender.transactional_id, sender.producer, frozenset({partition}), 0
                )
            )
            return True

        return bool(self._try(add))

    def _try(self, work: Any) -> Any:
        try:
            return work()
        except KafkaError as error:
            assert error.code in EXPECTED, error
            return None


class ClassicAtomicity(Atomicity):
    level = 1


TestAtomicity = Atomicity.TestCase
TestClassicAtomicity = ClassicAtomicity.TestCase
TestAtomicity.settings = TestClassicAtomicity.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None
)
