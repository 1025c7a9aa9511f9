"""The transaction APIs in every version, valid and invalid, in both protocol versions (KIP-890)."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.interop.differential.broker import TIME, Broker

_BUSY = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
TRANSACTIONAL = 0x10
ABORT, COMMIT = False, True


class TransactionalProducer:
    """A producer with a transactional id; its producer ids are recorded as placeholders."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.id = broker.name(name)
        self.producer_id, self.epoch = -1, -1
        self._words: dict[int, str] = {-1: "none"}
        self._sequences: dict[tuple[str, int], int] = {}
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.id])
        eventually(lambda: broker.call(find, 6).coordinators[0].error_code == 0, what="a coordinator")
        eventually(lambda: self._state().error_code not in _BUSY, what="the coordinator is ready")

    def note(self, label: str, answer: Any) -> Any:
        if hasattr(answer, "producer_id"):
            number = answer.producer_id
            answer.producer_id = self._words.setdefault(number, f"id {len(self._words)}")
            self.broker.note(label, answer)
            answer.producer_id = number
        else:
            self.broker.note(label, answer)
        return answer

    def call_until_completed(self, ask: Any) -> Any:
        """Retry while the last transaction is being completed, which may take different times."""

        def attempt() -> Any:
            answer = ask()
            return None if getattr(answer, "error_code", 0) in _BUSY else answer

        return eventually(attempt, what=f"an answer for {self.id}")

    def init(self, label: str, *, version: int = 5, adopt: bool = True, **fields: Any) -> Any:
        fields.setdefault("transaction_timeout_ms", 60_000)
        request = InitProducerIdRequest(transactional_id=self.id, **fields)
        answer = self.note(label, self.call_until_completed(lambda: self.broker.call(request, version)))
        if adopt and answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return answer

    def add(
        self,
        label: str,
        *partitions: tuple[str, int],
        version: int = 3,
        epoch: int | None = None,
        producer_id: int | None = None,
        verify: bool = False,
    ) -> Any:
        names = dict.fromkeys(name for name, _ in partitions)
        topics = [
            AddPartitionsToTxnTopic(
                name=name, partitions=[index for each, index in partitions if each == name]
            )
            for name in names
        ]
        epoch = self.epoch if epoch is None else epoch
        producer_id = self.producer_id if producer_id is None else producer_id
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=self.id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=verify,
                topics=topics,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        return self.broker.ask(label, request, version)

    def send(
        self,
        label: str,
        topic: str,
        index: int = 0,
        *,
        version: int = 12,
        epoch: int | None = None,
        sequence: int | None = None,
        producer_id: int | None = None,
    ) -> Any:
        key = (topic, index)
        next_sequence = self._sequences.get(key, 0)
        data = batch(
            timestamp=TIME,
            attributes=TRANSACTIONAL,
            producer_id=self.producer_id if producer_id is None else producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            sequence=next_sequence if sequence is None else sequence,
        )
        part = PartitionProduceData(index=index, records=memoryview(data))
        topics = [TopicProduceData(name=topic, partition_data=[part])]
        request = ProduceRequest(acks=-1, timeout_ms=5000, transactional_id=self.id, topic_data=topics)
        answer = self.broker.ask(label, request, version)
        if answer.responses[0].partition_responses[0].error_code == 0 and sequence is None:
            self._sequences[key] = next_sequence + 1
        return answer

    def end(
        self,
        label: str,
        committed: bool,
        *,
        version: int = 5,
        epoch: int | None = None,
        producer_id: int | None = None,
    ) -> Any:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id if producer_id is None else producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=committed,
        )
        answer = self.note(label, self.call_until_completed(lambda: self.broker.call(request, version)))
        if version >= 5 and answer.error_code == 0 and epoch is None:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        self.settled()
        return answer

    def settled(self) -> None:
        """Wait until every partition has its marker."""
        eventually(lambda: not self.state().startswith("Prepare"), what=f"the end of {self.id}")

    def state(self) -> str:
        return str(self._state().transaction_state)

    def _state(self) -> Any:
        answer = self.broker.call(DescribeTransactionsRequest(transactional_ids=[self.id]), 0)
        return answer.transaction_states[0]

    def describe(self, label: str) -> None:
        answer = self.broker.call(DescribeTransactionsRequest(transactional_ids=[self.id]), 0)
        [state] = answer.transaction_states
        state.producer_id = self._words.setdefault(state.producer_id, f"id {len(self._words)}")
        self.broker.note(label, answer)


def look(broker: Broker, label: str, topic: str, *tellers: TransactionalProducer) -> None:
    """Record the partition as both isolation levels see it."""
    names = {each.producer_id: each.id for each in tellers}
    for isolation in (0, 1):
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        fetch = FetchRequest(
            max_wait_ms=0,
            isolation_level=isolation,
            session_epoch=-1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        answer = broker.call(fetch, 12).responses[0].partitions[0]
        aborted = answer.aborted_transactions
        told = (
            None
            if aborted is None
            else sorted((names.get(each.producer_id, "?"), each.first_offset) for each in aborted)
        )
        broker.note(
            f"{label}, isolation {isolation}",
            [str(answer.high_watermark), str(answer.last_stable_offset), str(told), bool(answer.records)],
        )
        offsets = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=stamp)],
                )
                for stamp in (-1,)
            ],
        )
        broker.ask(f"{label}, latest with isolation {isolation}", offsets, 6)


def producers(broker: Broker, label: str, topic: str, *tellers: TransactionalProducer) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    answer = broker.call(request, 0)
    names = {each.producer_id: each.id for each in tellers}
    for each in answer.topics[0].partitions[0].active_producers:
        each.producer_id = names.get(each.producer_id, "?")
    broker.note(label, answer)


def implicit(broker: Broker) -> None:
    topic = broker.topic("txn-implicit")
    producer = TransactionalProducer(broker, "implicit")
    producer.describe("unknown")
    producer.init("init")
    producer.describe("empty")
    producer.send("the first batch", topic)
    producer.send("the second", topic)
    producer.describe("open")
    producers(broker, "producers while open", topic, producer)
    look(broker, "open", topic, producer)
    producer.end("commit", COMMIT)
    producer.describe("committed")
    look(broker, "committed", topic, producer)
    producer.send("another transaction", topic)
    producer.end("abort", ABORT)
    look(broker, "aborted", topic, producer)
    producers(broker, "producers after", topic, producer)
    producer.end("abort of nothing", ABORT)
    producer.end("commit of nothing", COMMIT)
    producer.send("once more", topic)
    before = producer.epoch
    producer.end("end", COMMIT)
    for word, committed in (("commit", COMMIT), ("abort", ABORT)):
        producer.end(f"{word}, a retry", committed, epoch=before)
        producer.end(f"{word}, two epochs back", committed, epoch=before - 1)
        producer.end(f"{word}, a future epoch", committed, epoch=producer.epoch + 1)
        producer.end(f"{word}, another producer id", committed, producer_id=999_999)
    producer.send("an old epoch", topic, epoch=before)
    producer.send("a future epoch", topic, epoch=producer.epoch + 5)
    producer.send("another producer id", topic, producer_id=999_998)
    producer.send("a sequence that is not 0", topic, sequence=5)
    producer.send("an unknown partition", topic, 7)
    producer.send("an unknown topic", "nobody")
    producer.describe("at the end")


def classic(broker: Broker) -> None:
    topic = broker.topic("txn-classic", 2)
    for version in range(4):
        producer = TransactionalProducer(broker, f"classic-{version}")
        produce = 11 if version == 3 else 9 + version // 2
        producer.init(f"v{version} init", version=version)
        producer.send(f"v{version} before it is added", topic, version=produce)
        producer.add(f"v{version} add", (topic, 0), version=version)
        producer.add(f"v{version} add again", (topic, 0), version=version)
        producer.send(f"v{version} send", topic, version=produce)
        producer.send(f"v{version} a partition that was not added", topic, 1, version=produce)
        producer.describe(f"v{version} open")
        producer.end(f"v{version} commit", COMMIT, version=min(version, 4))
        producer.describe(f"v{version} committed")
        producer.end(f"v{version} commit again", COMMIT, version=version)
        producer.end(f"v{version} abort a committed transaction", ABORT, version=version)
        producer.add(f"v{version} add after it", (topic, 0), (topic, 1), version=version)
        producer.end(f"v{version} abort", ABORT, version=version)
        producer.end(f"v{version} abort again", ABORT, version=version)
        producer.end(f"v{version} commit an aborted transaction", COMMIT, version=version)
        for label, epoch, producer_id in (
            ("an old epoch", producer.epoch - 1, None),
            ("a future epoch", producer.epoch + 1, None),
            ("another producer id", None, 999_999),
        ):
            producer.add(
                f"v{version} add, {label}", (topic, 0), version=version, epoch=epoch, producer_id=producer_id
            )
            producer.end(
                f"v{version} end, {label}", ABORT, version=version, epoch=epoch, producer_id=producer_id
            )
        producer.add(f"v{version} unknown topic", ("nobody", 0), (topic, 0), version=version)
        producer.add(f"v{version} unknown partition", (topic, 9), version=version)
    stranger = TransactionalProducer(broker, "classic-stranger")
    stranger.producer_id, stranger.epoch = 5, 0
    stranger.add("an unknown transactional id", (topic, 0))
    stranger.end("end of an unknown transactional id", COMMIT, version=4)
    stranger.end("end of an unknown transactional id, implicit", COMMIT)
    stranger.send("produce with an unknown transactional id", topic, version=11)
    stranger.send("produce with an unknown transactional id, implicit", topic)


def fencing(broker: Broker) -> None:
    topic = broker.topic("txn-fencing")
    for label, produce, end in (("implicit", 12, 5), ("classic", 11, 4)):
        zombie, successor = (
            TransactionalProducer(broker, f"fenced-{label}"),
            TransactionalProducer(broker, f"fenced-{label}"),
        )
        zombie.init(f"{label} init")
        if label == "classic":
            zombie.add("classic add", (topic, 0))
        zombie.send(f"{label} the zombie starts", topic, version=produce)
        successor.init(f"{label} the successor")
        zombie.send(f"{label} the zombie sends", topic, version=produce)
        for version in range(end, 6 if label == "implicit" else 5):
            zombie.end(f"{label} v{version} the zombie commits", COMMIT, version=version)
        for version in (0, 1, 2, 3):
            zombie.add(f"{label} v{version} the zombie adds", (topic, 0), version=version)
        for version in (3, 4, 5):
            zombie.init(
                f"{label} v{version} the zombie recovers",
                version=version,
                producer_id=zombie.producer_id,
                producer_epoch=zombie.epoch,
            )
        last = successor.epoch
        successor.init(f"{label} recovers", producer_id=successor.producer_id, producer_epoch=last)
        successor.init(f"{label} recovers again", producer_id=successor.producer_id, producer_epoch=last)
        successor.init(f"{label} too late", producer_id=successor.producer_id, producer_epoch=last - 1)
        successor.init(f"{label} another id", producer_id=999_999, producer_epoch=0)


def initializing(broker: Broker) -> None:
    producer = TransactionalProducer(broker, "initializing")
    for version in range(6):
        for timeout in (0, -1, 1, 900_000, 900_001):
            producer.init(f"v{version} timeout {timeout}", version=version, transaction_timeout_ms=timeout)
        if version >= 3:
            producer.init(f"v{version} a producer id without an epoch", version=version, producer_id=7)
            producer.init(f"v{version} an epoch without a producer id", version=version, producer_epoch=7)
    known = TransactionalProducer(broker, "claims-to-be-known")
    known.init("an unknown id that claims an epoch", producer_id=77, producer_epoch=3)


def between_brokers(broker: Broker) -> None:
    topic = broker.topic("txn-brokers", 2)
    for version in (4, 5):
        producer = TransactionalProducer(broker, f"brokers-{version}")
        producer.init(f"v{version} init")
        producer.add(f"v{version} verify nothing", (topic, 0), version=version, verify=True)
        producer.add(f"v{version} add", (topic, 0), version=version)
        producer.add(f"v{version} verify one of two", (topic, 0), (topic, 1), version=version, verify=True)
        producer.add(f"v{version} verify, old epoch", (topic, 0), version=version, verify=True, epoch=-1)
        producer.add(
            f"v{version} verify, another id", (topic, 0), version=version, verify=True, producer_id=9
        )
        producer.add(f"v{version} unknown topic", ("nobody", 0), (topic, 0), version=version)
        producer.end(f"v{version} commit", COMMIT)
        empty = AddPartitionsToTxnTransaction(
            transactional_id="",
            producer_id=1,
            producer_epoch=1,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        broker.ask(f"v{version} no id", AddPartitionsToTxnRequest(transactions=[empty]), version)


def markers(broker: Broker) -> None:
    topic = broker.topic("txn-markers")
    for version in (1, 2):
        for level in (0, 2) if version == 2 else (0,):
            producer = TransactionalProducer(broker, f"markers-{version}-{level}")
            producer.init(f"v{version} {level} init")

            def write(
                label: str,
                name: str,
                epoch: int,
                committed: bool,
                coordinator_epoch: int = 5,
                index: int = 0,
                version: int = version,
                level: int = level,
                producer: TransactionalProducer = producer,
            ) -> None:
                marker = WritableTxnMarker(
                    producer_id=producer.producer_id,
                    producer_epoch=epoch,
                    transaction_result=committed,
                    coordinator_epoch=coordinator_epoch,
                    transaction_version=level,
                    topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[index])],
                )
                answer = broker.call(WriteTxnMarkersRequest(markers=[marker]), version)
                for each in answer.markers:
                    each.producer_id = "the producer"
                broker.note(f"v{version} {level} {label}", answer)

            producer.send(f"v{version} {level} send", topic)
            write("the present epoch", topic, producer.epoch, COMMIT)
            write("the next epoch", topic, producer.epoch + 1, ABORT)
            write("again", topic, producer.epoch + 1, ABORT)
            write("an old epoch", topic, producer.epoch, ABORT)
            write("an old coordinator", topic, producer.epoch + 2, ABORT, 4)
            write("an unknown partition", topic, 9, ABORT, index=4)
            write("an unknown topic", "nobody", 9, ABORT)
            producers(broker, f"v{version} {level} producers", topic, producer)
        broker.ask(f"v{version} nothing", WriteTxnMarkersRequest(), version)
    look(broker, "markers", topic)


def offsets_in_transactions(broker: Broker) -> None:
    topic = broker.topic("txn-offsets")
    group = broker.name("txn-group")
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    eventually(lambda: broker.call(find, 6).coordinators[0].error_code == 0, what="a group coordinator")

    def commit(
        label: str, producer: TransactionalProducer, version: int, name: str = topic, **fields: Any
    ) -> None:
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)
        fields = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, **fields}
        request = TxnOffsetCommitRequest(
            transactional_id=producer.id,
            group_id=group,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=[part])],
            **fields,
        )
        broker.ask(label, request, version)

    described = DescribeGroupsRequest(groups=[group])
    eventually(
        lambda: broker.call(described, 5).groups[0].error_code not in _BUSY,
        what="the group's coordinator is ready",
    )
    for version in range(6):
        producer = TransactionalProducer(broker, f"offsets-{version}")
        producer.init(f"v{version} init")
        if version < 5:
            commit(f"v{version} before the group is added", producer, version)
            request = AddOffsetsToTxnRequest(
                transactional_id=producer.id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                group_id=group,
            )
            broker.ask(f"v{version} add", request, version)
            request.producer_epoch = producer.epoch + 1
            broker.ask(f"v{version} add, a future epoch", request, version)
            request.producer_id = 999_999
            broker.ask(f"v{version} add, another id", request, version)
            request.transactional_id = ""
            broker.ask(f"v{version} add, no id", request, version)
        commit(f"v{version} commit", producer, version)
        commit(f"v{version} an unknown topic", producer, version, "nobody")
        commit(f"v{version} a future epoch", producer, version, producer_epoch=producer.epoch + 1)
        producer.describe(f"v{version} open")
        producer.end(f"v{version} end", COMMIT, version=min(version, 5))
        commit(f"v{version} an old epoch", producer, version, producer_epoch=-1)


def listing(broker: Broker) -> None:
    topic = broker.topic("txn-listing")
    idle, opened = TransactionalProducer(broker, "listed-idle"), TransactionalProducer(broker, "listed-open")
    idle.init("idle")
    opened.init("open")
    opened.send("send", topic)
    words = {idle.producer_id: "idle", opened.producer_id: "open"}

    def ask(label: str, version: int, **fields: Any) -> None:
        answer = broker.call(ListTransactionsRequest(**fields), version)
        answer.transaction_states = [each for each in answer.transaction_states if each.producer_id in words]
        for each in answer.transaction_states:
            each.producer_id = words[each.producer_id]
        broker.note(f"v{version} {label}", answer)

    for version in (0, 1, 2):
        ask("all", version)
        for states in (["Ongoing"], ["Empty", "Dead"], ["ongoing"], ["Nonsense", "Ongoing"]):
            ask(f"states {states}", version, state_filters=states)
        ask("by producer", version, producer_id_filters=[idle.producer_id, 12])
        if version >= 1:
            ask("for a day", version, duration_filter=86_400_000)
            ask("for a moment", version, duration_filter=0)
        if version >= 2:
            for pattern in ("", ".*open.*", "listed", "(", f"{broker.name('listed-idle')}|x", "[a-"):
                ask(f"pattern {pattern.partition('-')[0]}", version, transactional_id_pattern=pattern)
    broker.ask("describe unknown ids", DescribeTransactionsRequest(transactional_ids=["", "nobody"]), 0)
    broker.ask("describe nothing", DescribeTransactionsRequest(), 0)
    opened.end("end", ABORT)


SCENES = {
    "transactions, implicit": implicit,
    "transactions, classic": classic,
    "transactions, fencing": fencing,
    "transactions, initializing": initializing,
    "transactions, between brokers": between_brokers,
    "transactions, markers": markers,
    "transactions, offsets": offsets_in_transactions,
    "transactions, listing": listing,
}
