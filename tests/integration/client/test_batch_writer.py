"""Rows written by `ArrowProducer`, read back by librdkafka; the same on Apache Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client import AdminClient, NewTopic
from moldau.client.admin.client import checked
from moldau.client.admin.features import FeatureUpdate, UpgradeType
from moldau.client.batches.writer import BatchWriter
from moldau.client.partitioners import partition_for_key
from moldau.client.wire.errors import ProducerFenced
from moldau.client.wire.settings import ClientSettings, parse_addresses
from moldau.pipelines.arrow.writing import ArrowProducer
from moldau.protocol.records import Record, build_batch
from tests.harness.clients.reading import messages
from tests.integration.conftest import Node, StartNode

PARTITIONS = 3
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NewProducer = Callable[..., ArrowProducer]


def settings_of(bootstrap: str) -> ClientSettings:
    return ClientSettings(parse_addresses(bootstrap), backoff=Backoff(0.02, 0.2))


def create(bootstrap: str, topic: str, **configs: str) -> None:
    with AdminClient(bootstrap) as admin:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS, replication_factor=1, configs=named)])


def values(*numbers: int) -> Any:
    return pa.record_batch({"value": [b"%06d" % number for number in numbers]})


def read(bootstrap: str, topic: str, *, committed: bool = True) -> list[int]:
    found = messages(bootstrap, topic, PARTITIONS, committed=committed)
    return sorted(int(message.value()) for message in found)


@pytest.fixture
def topic(bootstrap: str, topic: str) -> str:
    create(bootstrap, topic)
    return topic


@pytest.fixture
def new(bootstrap: str) -> Iterator[NewProducer]:
    made: list[ArrowProducer] = []

    def make(where: str = bootstrap, **options: Any) -> ArrowProducer:
        made.append(ArrowProducer(settings_of(where), **options))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_written_batches_are_read(bootstrap: str, topic: str, new: NewProducer, codec: str) -> None:
    keys = [None if number % 5 == 0 else b"key-%d" % number for number in range(2000)]
    rows = pa.record_batch(
        {
            "key": keys,
            "value": [None if number % 7 == 0 else f"value-{number}" for number in range(2000)],
            "headers": pa.array(
                [[{"key": "n", "value": b"%d" % n}] * (n % 3) if n % 4 else None for n in range(2000)],
                HEADERS,
            ),
            "timestamp": pa.array(range(10**15, 10**15 + 2_000_000, 1000), pa.timestamp("us", "UTC")),
        }
    )
    producer = new(compression=codec, batch_size=20_000)
    assert producer.send(rows, topic) == 2000
    producer.flush()
    found = {}
    for message in messages(bootstrap, topic, PARTITIONS):
        number = message.timestamp()[1] - 10**12
        assert number not in found
        found[number] = message.value()
        assert message.key() == keys[number]
        if message.key() is not None:
            assert message.partition() == partition_for_key(message.key(), PARTITIONS)
        wanted = [("n", b"%d" % number)] * (number % 3) if number % 4 else []
        assert (message.headers() or []) == wanted
    assert found == {n: None if n % 7 == 0 else f"value-{n}".encode() for n in range(2000)}


def test_rows_are_written_to_their_topic_and_partition(bootstrap: str, topic: str, new: NewProducer) -> None:
    other = f"{topic}-other"
    create(bootstrap, other)
    rows = pa.record_batch(
        {
            "topic": [topic, other] * 10,
            "partition": [0, 1, 2, None] * 5,
            "value": [b"%d" % n for n in range(20)],
        }
    )
    producer = new()
    producer.send(rows, None)
    producer.flush()
    first, second = (messages(bootstrap, name, PARTITIONS) for name in (topic, other))
    assert sorted(int(each.value()) for each in first) == list(range(0, 20, 2))
    assert all(each.partition() == int(each.value()) % 4 for each in first)
    assert {each.partition() for each in second if int(each.value()) % 4 == 1} == {1}


def test_added_partitions_are_found(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    producer.send(values(1), topic)
    producer.flush()
    with AdminClient(bootstrap) as admin:
        checked(admin.create_partitions({topic: PARTITIONS + 1}))
    producer.send(pa.record_batch({"value": [b"2"], "partition": [PARTITIONS]}), topic)
    producer.flush()
    found = messages(bootstrap, topic, PARTITIONS + 1)
    assert [each.value() for each in found if each.partition() == PARTITIONS] == [b"2"]
    producer.send(pa.record_batch({"value": [b"2"], "partition": [PARTITIONS + 1]}), topic)
    with pytest.raises(KafkaError, match=f"partition {PARTITIONS + 1} of {topic}, which has partitions 0 to"):
        producer.flush()


def test_missing_topic_is_created_automatically(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    producer.send(values(1, 2), f"{topic}-made")
    producer.flush()
    assert len(messages(bootstrap, f"{topic}-made")) == 2


def test_missing_topic_is_reported_with_the_command_to_create_it(
    start_node: StartNode, new: NewProducer
) -> None:
    node = start_node(config={"auto.create.topics.enable": "false"})
    producer = new(node.bootstrap_servers)
    producer.send(values(1), "nobody-made-it")
    with pytest.raises(KafkaError, match=r"Topic 'nobody-made-it' does not exist.*kafka-topics .* --create"):
        producer.flush()


def test_deleted_topic_is_reported(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    producer.send(values(1), topic)
    producer.flush()
    with AdminClient(bootstrap) as admin:
        checked(admin.delete_topics([topic]))
    producer.send(values(2), topic)
    with pytest.raises(KafkaError, match=f"Topic '{topic}' does not exist any more: was it deleted"):
        producer.flush()


def test_batches_too_large_for_the_topic_are_split(bootstrap: str, topic: str, new: NewProducer) -> None:
    small = f"{topic}-small"
    create(bootstrap, small, max_message_bytes="2000")
    producer = new(compression="lz4")
    producer.send(values(*range(3000)), small)
    producer.flush()
    assert read(bootstrap, small) == list(range(3000))
    producer = new()
    producer.send(pa.record_batch({"value": [b"0", b"x" * 5000], "partition": [1, 1]}), small)
    with pytest.raises(KafkaError, match=r"-1: a record of about 5\d\d\d bytes .*max.message.bytes"):
        producer.flush()


def test_transaction_is_atomic(bootstrap: str, topic: str, new: NewProducer) -> None:
    check_transactions(bootstrap, topic, new)


@pytest.mark.parametrize("level", [0, 1])
def test_transactions_with_transaction_version_below_2(
    start_node: StartNode, new: NewProducer, level: int
) -> None:
    """Partitions and groups are announced, and the epoch stays from one transaction to the next."""
    bootstrap = start_node().bootstrap_servers
    with AdminClient(bootstrap) as admin:
        checked(
            admin.update_features({"transaction.version": FeatureUpdate(level, UpgradeType.SAFE_DOWNGRADE)})
        )
    for check in (check_transactions, check_fencing, check_a_refused_batch):
        create(bootstrap, check.__name__)
        check(bootstrap, check.__name__, new)


def test_transaction_after_an_aborted_one_is_committed(bootstrap: str, topic: str, new: NewProducer) -> None:
    check_a_refused_batch(bootstrap, topic, new)


def check_a_refused_batch(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new(bootstrap, transactional_id=topic)
    producer.init_transactions()
    for number in range(3):
        producer.begin()
        producer.send(values(10 * number), topic)
        producer.flush()
        producer.send(pa.record_batch({"value": [b"x" * 3_000_000]}), topic)
        with pytest.raises(KafkaError, match=r"max\.message\.bytes"):
            producer.flush()
        with pytest.raises(KafkaError, match=r"max\.message\.bytes"):
            producer.commit()
        producer.abort()
        producer.begin()
        producer.send(values(10 * number + 1), topic)
        producer.commit()
    assert read(bootstrap, topic) == [1, 11, 21]


def check_transactions(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer, where = new(bootstrap, transactional_id=topic), TopicPartition(topic, 0)
    producer.init_transactions()
    assert producer.marker(topic, where) is None
    producer.begin()
    producer.send(values(1, 2, 3), topic)
    producer.flush()
    assert read(bootstrap, topic) == []
    producer.commit((topic, where, 7))
    assert producer.marker(topic, where) == 7
    producer.begin()
    producer.send(values(4, 5), topic)
    producer.flush()
    producer.abort()
    producer.begin()
    producer.send(values(6), topic)
    producer.abort()
    producer.begin()
    producer.commit()
    assert producer.marker(topic, where) == 7
    for number in range(10, 30):
        producer.begin()
        producer.send(values(number), topic)
        producer.commit((topic, where, number))
    assert producer.marker(topic, where) == 29
    assert read(bootstrap, topic) == [1, 2, 3, *range(10, 30)]
    assert set(read(bootstrap, topic, committed=False)) >= {4, 5}


def test_producer_is_fenced_when_its_transactional_id_is_taken_over(
    bootstrap: str, topic: str, new: NewProducer
) -> None:
    check_fencing(bootstrap, topic, new)


def check_fencing(bootstrap: str, topic: str, new: NewProducer) -> None:
    old, where = new(bootstrap, transactional_id=topic), TopicPartition(topic, 0)
    old.init_transactions()
    old.begin()
    old.send(values(1), topic)
    old.flush()
    heir = new(bootstrap, transactional_id=topic)
    heir.init_transactions()
    assert heir.marker(topic, where) is None
    old.send(values(2), topic)
    with pytest.raises(ProducerFenced):
        old.commit((topic, where, 1))
    with pytest.raises(ProducerFenced):
        old.abort()
    heir.begin()
    heir.send(values(3), topic)
    heir.commit((topic, where, 2))
    assert heir.marker(topic, where) == 2
    assert read(bootstrap, topic) == [3]


def test_init_transactions_aborts_the_transaction_of_a_dead_producer(
    bootstrap: str, topic: str, new: NewProducer
) -> None:
    dead, where = new(transactional_id=topic), TopicPartition(topic, 0)
    dead.init_transactions()
    dead.begin()
    dead.send(values(1, 2), topic)
    dead.flush()
    dead._writer.send_offsets(topic, {where: 1})
    dead.close()
    heir = new(transactional_id=topic)
    heir.init_transactions()
    assert heir.marker(topic, where) is None
    assert read(bootstrap, topic) == []


def test_calls_in_the_wrong_order_are_refused(topic: str, new: NewProducer) -> None:
    producer = new(transactional_id=topic)
    with pytest.raises(KafkaError, match=r"call init_transactions\(\) first"):
        producer.begin()
    producer.init_transactions()
    with pytest.raises(KafkaError, match="no transaction is open"):
        producer.commit()
    producer.send(values(1), topic)
    with pytest.raises(KafkaError, match=r"call begin\(\) before write"):
        producer.flush()
    producer.begin()
    with pytest.raises(KafkaError, match="already open"):
        producer.begin()
    producer.abort()
    with pytest.raises(KafkaError, match="the writer has no transactional id"):
        new().init_transactions()
    with pytest.raises(KafkaError, match=r"compression\.type brotli"):
        new(compression="brotli")


def test_transaction_without_topic_for_its_marker_is_reported(topic: str, new: NewProducer) -> None:
    producer = new(transactional_id=topic)
    producer.init_transactions()
    producer.begin()
    producer.send(values(1), topic)
    with pytest.raises(KafkaError, match=f"{topic}-none-0: ") as refused:
        producer.commit((topic, TopicPartition(f"{topic}-none", 0), 1))
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.abort()


def test_batches_of_other_producers_are_written_unchanged(bootstrap: str, topic: str) -> None:
    with BatchWriter(settings_of(bootstrap)) as writer:
        for codec in range(5):
            records = [Record(n, 1000, b"k", b"%d" % (10 * codec + n), [("h", None)]) for n in range(10)]
            writer.write([(TopicPartition(topic, 1), build_batch(records, codec=codec))])
        writer.flush()
        assert writer.records_stored == 50
    found = messages(bootstrap, topic, PARTITIONS)
    assert [int(message.value()) for message in found] == list(range(50))
    assert {message.partition() for message in found} == {1}


def test_unreachable_broker_is_reported_soon(new: NewProducer) -> None:
    producer = new("127.0.0.1:1")
    producer.send(values(1), "orders")
    begin = time.monotonic()
    with pytest.raises(KafkaError, match="connection refused"):
        producer.flush()
    assert time.monotonic() - begin < 60


class Killer:
    """Kills and restarts a node over and over, until it is told to stop."""

    def __init__(self, node: Node, rounds: int) -> None:
        self.done = threading.Event()
        self._node = node
        self._rounds = rounds
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for _ in range(self._rounds):
            time.sleep(0.3)
            self._node.kill()
            self._node.restart()
        self.done.set()

    def join(self) -> None:
        self._thread.join()


@pytest.mark.parametrize("transactional", [False, True])
def test_writer_survives_the_kill_of_a_broker(
    start_node: StartNode, new: NewProducer, on_moldau: bool, transactional: bool
) -> None:
    """Nothing is lost and nothing is there twice, in the order it was sent."""
    node = start_node()
    bootstrap = node.bootstrap_servers
    create(bootstrap, "orders")
    where = TopicPartition("orders", 0)
    producer = new(bootstrap, transactional_id="id" if transactional else None, batch_size=2000)
    if transactional:
        producer.init_transactions()
    # Apache Kafka takes ten seconds and more to be there again.
    killer = Killer(node, rounds=4 if on_moldau else 1)
    sent = rounds = 0
    while not killer.done.is_set() or rounds < 5:
        rounds += 1
        if transactional:
            producer.begin()
        for _ in range(10):
            producer.send(values(*range(sent, sent + 2000)), "orders")
            sent += 2000
        if transactional:
            producer.commit(("id", where, rounds))
        else:
            producer.flush()
    killer.join()
    if transactional:
        assert producer.marker("id", where) == rounds
    found = messages(bootstrap, "orders", PARTITIONS)
    by_partition: dict[int, list[int]] = {}
    for message in found:
        by_partition.setdefault(message.partition(), []).append(int(message.value()))
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())
    assert sorted(number for numbers in by_partition.values() for number in numbers) == list(range(sent))
