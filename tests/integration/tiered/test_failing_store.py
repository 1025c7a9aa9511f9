"""A remote store that fails, is slow or returns damaged bytes: writes continue, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from moldau.testing import Cluster
from tests.harness.tiered.faulty_store import (
    COPY,
    DAMAGED,
    DELETE,
    HANG,
    HANG_READ,
    HANGING,
    READ,
    set_faults,
)
from tests.harness.tiered.worlds import (
    consume,
    local,
    produce,
    stored,
    tiered_config,
    tiered_topic,
)
from tests.harness.waiting import eventually

_STORE = "tests.harness.tiered.faulty_store.FaultyStore"
_REPOSITORY = str(Path(__file__).parents[3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    own = {
        "remote.log.storage.manager.class.name": _STORE,
        "remote.log.storage.manager.class.path": _REPOSITORY,
    }
    with Cluster(config=tiered_config(folder) | own) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def healthy(folder: Path) -> Iterator[None]:
    set_faults(folder)
    yield
    set_faults(folder)


def tiered(cluster: Cluster, folder: Path, topic: str, count: int = 55) -> None:
    tiered_topic(cluster.bootstrap_servers, topic)
    produce(cluster.bootstrap_servers, topic, range(count))
    eventually(lambda: stored(folder, topic) and len(local(cluster.data_dir, topic)) == 1)


def has_logged(cluster: Cluster, *words: str) -> bool:
    lines = cluster.log_file.read_text().splitlines()
    return any(all(word in line for word in words) for line in lines)


def test_nothing_is_deleted_locally_while_copies_fail(cluster: Cluster, folder: Path, topic: str) -> None:
    set_faults(folder, COPY)
    tiered_topic(cluster.bootstrap_servers, topic)
    produce(cluster.bootstrap_servers, topic, range(40))
    eventually(lambda: has_logged(cluster, f"tiered storage of {topic}-0 failed", "503"))
    assert local(cluster.data_dir, topic)[0] == 0
    assert consume(cluster.bootstrap_servers, topic, 0, 40) == list(range(40))
    set_faults(folder)
    eventually(lambda: len(local(cluster.data_dir, topic)) == 1)
    # The failed attempts have left nothing.
    eventually(lambda: len(stored(folder, topic)) == len(set(stored(folder, topic))))
    assert consume(cluster.bootstrap_servers, topic, 0, 40) == list(range(40))


def test_readers_continue_after_the_store_was_gone(cluster: Cluster, folder: Path, topic: str) -> None:
    tiered(cluster, folder, topic)
    set_faults(folder, READ)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "x", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    eventually(
        lambda: consumer.poll(0.1) or has_logged(cluster, topic, "cannot be read from the remote tier")
    )
    # Writes and reads of local records continue.
    produce(cluster.bootstrap_servers, topic, range(55, 57))
    assert consume(cluster.bootstrap_servers, topic, 55, 2) == [55, 56]
    set_faults(folder)

    def first() -> int | None:
        message = consumer.poll(0.5)
        return None if message is None or message.error() else message.offset() + 1

    assert eventually(first) == 1
    consumer.close()


def test_damaged_bytes_are_not_served(cluster: Cluster, folder: Path, topic: str) -> None:
    tiered(cluster, folder, topic)
    set_faults(folder, DAMAGED)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "x", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])

    def refused() -> bool:
        message = consumer.poll(0.1)
        assert message is None or message.error() or message.offset() < 10
        return has_logged(cluster, topic, "is damaged in the remote store")

    eventually(refused)
    consumer.close()
    set_faults(folder)
    assert consume(cluster.bootstrap_servers, topic, 0, 55) == list(range(55))


def test_a_store_that_does_not_answer_delays_only_old_offsets(
    cluster: Cluster, folder: Path, topic: str
) -> None:
    tiered(cluster, folder, topic)
    set_faults(folder, HANG_READ)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "x", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    eventually(lambda: consumer.poll(0.1) or (folder / HANGING).exists())
    # The read does not end before the writes and the reads of local records.
    produce(cluster.bootstrap_servers, topic, range(55, 56))
    assert consume(cluster.bootstrap_servers, topic, 55, 1) == [55]
    assert (folder / HANGING).exists()
    set_faults(folder)

    def first() -> int | None:
        message = consumer.poll(0.5)
        return None if message is None or message.error() else message.offset() + 1

    assert eventually(first) == 1
    consumer.close()


def test_a_copy_that_a_crash_interrupted_is_deleted(cluster: Cluster, folder: Path, topic: str) -> None:
    set_faults(folder, HANG)
    tiered_topic(cluster.bootstrap_servers, topic)
    produce(cluster.bootstrap_servers, topic, range(25))
    # The store has everything, but nobody has confirmed it.
    (orphan,) = eventually(lambda: list(folder.glob(f"kafka-tiered-storage/{topic}-*/*.log")))
    cluster.kill()
    set_faults(folder)
    cluster.restart()
    eventually(lambda: len(local(cluster.data_dir, topic)) == 1)
    assert stored(folder, topic).count(0) >= 1
    eventually(lambda: not orphan.exists())
    remote = stored(folder, topic)
    assert remote == sorted(set(remote))
    assert consume(cluster.bootstrap_servers, topic, 0, 25) == list(range(25))


def test_failed_deletions_are_repeated(cluster: Cluster, folder: Path, topic: str) -> None:
    tiered(cluster, folder, topic)
    set_faults(folder, DELETE)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: has_logged(cluster, f"the remote segments of {topic}-0 are deleted later"))
    assert stored(folder, topic)
    set_faults(folder)
    eventually(lambda: not list(folder.glob(f"kafka-tiered-storage/{topic}-*")))
