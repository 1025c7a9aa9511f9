"""Nothing that was acknowledged is lost, whatever happens to the nodes.

`MOLDAU_CHAOS_SECONDS` makes it longer (20 without it), `MOLDAU_CHAOS_SEED` chooses another order of faults,
`MOLDAU_CHAOS_NODES` another number of nodes (three of them vote).
What the nodes said is kept in the test's folder and named when a rule was broken.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.integration.chaos.checker import check
from tests.integration.chaos.faults import Faults
from tests.integration.chaos.history import History
from tests.integration.chaos.readers import Member, Reader, final_commits, read_log
from tests.integration.chaos.writers import (
    AiokafkaWriter,
    KafkaPythonWriter,
    LibrdkafkaWriter,
    PlainLibrdkafkaWriter,
    TransactionalWriter,
    Writer,
)

SECONDS = float(os.environ.get("MOLDAU_CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("MOLDAU_CHAOS_SEED", "1"))
NODES = int(os.environ.get("MOLDAU_CHAOS_NODES", "3"))
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
#: Timeouts that a short run can wait for; Kafka's are meant for networks that are bad for longer.
CONFIG = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 1500,
    "replica.lag.time.max.ms": 3000,
    "replica.fetch.wait.max.ms": 200,
    "group.min.session.timeout.ms": 1000,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
}


@pytest.fixture(autouse=True)
def quiet_clients() -> Iterator[None]:
    """These two say a line for every request that fails."""
    loggers = [logging.getLogger(name) for name in ("aiokafka", "kafka")]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger in loggers:
        logger.setLevel(logging.NOTSET)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(brokers=NODES, config=CONFIG, data_dir=tmp_path / "cluster")
    try:
        yield running.start()
    finally:
        running.kill()
        running.close()


def create_topic(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    settings = {"min.insync.replicas": "2"}
    [created] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=settings)]).values()
    created.result(30)


@pytest.mark.timeout(SECONDS + 240)
def test_nothing_acknowledged_is_lost(cluster: Cluster) -> None:
    create_topic(cluster)
    history, bootstrap = History(), cluster.bootstrap_servers
    faults = Faults(cluster, history, SEED)
    writers = [kind(name, bootstrap, TOPIC, PARTITIONS, history) for name, kind in WRITERS.items()]
    readers = [Reader("reader", bootstrap, TOPIC, PARTITIONS, history)]
    readers += [Member(f"member-{number}", bootstrap, TOPIC, PARTITIONS, history) for number in (1, 2)]
    clients: list[Writer | Reader] = [*writers, *readers]
    for client in clients:
        client.start()
    eventually(lambda: len(history.acknowledged) == len(WRITERS) - 1, timeout=30, what="all writers write")
    faults.run(SECONDS)
    faults.end()
    before = history.count()
    eventually(lambda: history.count() > before, timeout=30, what="writing goes on after the last fault")
    for client in clients:
        client.finish(90)
    everything = read_log(bootstrap, TOPIC, PARTITIONS, "read_uncommitted", 60)
    committed = read_log(bootstrap, TOPIC, PARTITIONS, "read_committed", 60)
    final_commits(bootstrap, Member.group, TOPIC, PARTITIONS, history)
    found = check(history, everything, committed, EXACTLY_ONCE)
    assert not found, report(found, history, cluster)


def report(found: list[str], history: History, cluster: Cluster) -> str:
    logs = "\n".join(str(node.log_file) for node in cluster.nodes)
    return (
        f"seed {SEED}, {SECONDS:g} s\n"
        + "\n".join(found)
        + "\n\nwhat happened:\n"
        + "\n".join(history.timeline)
    ) + f"\n\nwhat the nodes said:\n{logs}"
