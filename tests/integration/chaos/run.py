"""One run: clients of every kind, faults, recovery, and the checker at the end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from moldau.protocol.records import iter_batches
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.integration.chaos.access import Access
from tests.integration.chaos.administrators import Administrator
from tests.integration.chaos.checker import check, miscopied
from tests.integration.chaos.faults import Faults
from tests.integration.chaos.history import History
from tests.integration.chaos.namespaces import NamespaceCluster
from tests.integration.chaos.readers import Member, NewMember, Reader, final_commits, read_log
from tests.integration.chaos.transformers import OUT, Transformer, wait_copied
from tests.integration.chaos.writers import (
    AiokafkaWriter,
    KafkaPythonWriter,
    LibrdkafkaWriter,
    PlainLibrdkafkaWriter,
    TransactionalWriter,
    Writer,
)

TOPIC = "chaos"
PARTITIONS = 4
WRITERS: dict[str, type[Writer]] = {
    "librdkafka": LibrdkafkaWriter,
    "plain": PlainLibrdkafkaWriter,
    "transactional": TransactionalWriter,
    "kafka-python": KafkaPythonWriter,
    "aiokafka": AiokafkaWriter,
}
EXACTLY_ONCE = set(WRITERS) - {"plain"}
#: Short timeouts for a short run; Kafka's defaults are meant for longer outages.
CONFIG: dict[str, str | int | bool] = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "replica.fetch.wait.max.ms": 200,
    "group.min.session.timeout.ms": 1000,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "group.consumer.min.session.timeout.ms": 3000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 1000,
    # The metadata log of restarted nodes ends before the leader's log starts: they fetch a snapshot.
    "metadata.log.max.record.bytes.between.snapshots": 20_000,
    "metadata.max.retention.bytes": 50_000,
}


def run(cluster: Cluster | NamespaceCluster, seed: int, seconds: float) -> None:
    """Run faults for a time, in the order of a seed; fail with the history if a rule is violated."""
    history, access = History(), Access.to(cluster)
    _create_topics(access)
    faults = Faults(cluster, history, seed)
    clients: list[Writer | Reader] = [
        *(kind(name, access, TOPIC, PARTITIONS, history) for name, kind in WRITERS.items()),
        Reader("reader", access, TOPIC, PARTITIONS, history),
        *(Member(f"member-{number}", access, TOPIC, PARTITIONS, history) for number in (1, 2)),
        *(NewMember(f"new-member-{number}", access, TOPIC, PARTITIONS, history) for number in (1, 2)),
    ]
    administrator = Administrator("administrator", access, TOPIC, PARTITIONS, history)
    transformers = [
        Transformer(f"transformer-{number}", access, TOPIC, PARTITIONS, history) for number in (1, 2)
    ]
    for client in (*clients, administrator, *transformers):
        client.start()
    eventually(lambda: len(history.acknowledged) == len(WRITERS) - 1, what="all writers write")
    faults.run(seconds)
    faults.end()
    before = history.count()
    eventually(lambda: history.count() > before, what="writing continues after the last fault")
    for client in (*clients, administrator):
        client.finish(90)
    administrator.check()
    everything = read_log(access, TOPIC, PARTITIONS, "read_uncommitted", 60)
    committed = read_log(access, TOPIC, PARTITIONS, "read_committed", 60)
    wait_copied(history, access, TOPIC, committed)
    for each in transformers:
        each.finish(30)
    copied = read_log(access, OUT, PARTITIONS, "read_committed", 60)
    for group in (Member.group, NewMember.group):
        final_commits(access, group, TOPIC, PARTITIONS, history)
    producers = Producers(node.data_dir / "logs" for node in cluster.nodes)
    found = check(history, everything, committed, EXACTLY_ONCE, producers)
    found += miscopied(committed, copied)
    assert not found, _report(found, history, cluster, f"seed {seed}, {seconds:g} s")


class Producers:
    """Producer ids and epochs of records, read from the nodes' files on demand."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = list(folders)
        self._found: dict[int, dict[int, tuple[int, int]]] = {}

    def __call__(self, partition: int, offset: int) -> tuple[int, int]:
        if partition not in self._found:
            self._found[partition] = self._read(partition)
        return self._found[partition][offset]

    def _read(self, partition: int) -> dict[int, tuple[int, int]]:
        found = {}
        for folder in self._folders:
            for file in sorted((folder / f"{TOPIC}-{partition}").glob("*.log")):
                for _, batch in iter_batches(file.read_bytes()):
                    who = batch.producer_id, batch.producer_epoch
                    for offset in range(batch.base_offset, batch.last_offset + 1):
                        found[offset] = who
        return found


def _create_topics(access: Access) -> None:
    admin = AdminClient(access.librdkafka())
    # Segments are rolled often, so that a truncation to a new leader's log spans several of them.
    settings = {"min.insync.replicas": "2", "segment.ms": "1000"}
    topics = [NewTopic(name, PARTITIONS, 3, config=settings) for name in (TOPIC, OUT)]
    for created in admin.create_topics(topics).values():
        created.result(30)


def _report(found: list[str], history: History, cluster: Cluster | NamespaceCluster, title: str) -> str:
    logs = [str(node.log_file) for node in cluster.nodes]
    parts = [title, *found, "", "what happened:", *history.timeline, "", "output of the nodes:", *logs]
    return "\n".join(parts)
