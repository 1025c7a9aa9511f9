"""Kafka Streams in its default (classic) group protocol: word counts with at-least-once and, while instances
and the broker are killed, with exactly-once processing.

Every input word is output with its count. Exactly-once means that the counts of a word are 1, 2, 3 and
so on: a lost record leaves out the last one, a record processed twice adds one, and state that is older or
newer than the input position repeats or skips a number.
"""

from __future__ import annotations

import random
import subprocess
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from moldau.testing import Cluster
from tests.harness.apache.node import QUICK_START, ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.interop import jars
from tests.interop.conftest import Node

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parents[1] / "java" / "StreamsCount.java"
PARTITIONS = 3
WORDS = 7
INSTANCES = 2
KILLS = 8
A_STEP = 150
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(params=["apache", "moldau"])
def node(request: pytest.FixtureRequest, libs: Path) -> Iterator[Node]:
    """A separate node, because it is killed."""
    with (
        ApacheCluster(config=CONFIG, libs=libs)
        if request.param == "apache"
        else Cluster(config=CONFIG) as started
    ):
        yield started


class Application:
    """Instances of the program, each with its own state folder, restarted when they are killed."""

    def __init__(
        self,
        node: Node,
        guarantee: str,
        folder: Path,
        instances: int,
        create: Callable[[str], None] | None = None,
        settings: tuple[str, ...] = (),
        like: Application | None = None,
    ) -> None:
        """`create` creates a topic on a cluster of several nodes; `settings` are of Kafka Streams.

        `like` is another application with the same id and topics.
        """
        try:
            libs = jars.streams_libs()
            classes = jars.compiled(SOURCE, libs, f"streams-{jars.KAFKA}")
        except jars.Missing as missing:
            pytest.skip(str(missing))
        self.name = f"streams-{uuid.uuid4().hex[:6]}" if like is None else like.name
        self.source, self.target = f"{self.name}-in", f"{self.name}-out"
        self.bootstrap = node.bootstrap_servers
        for topic in (self.source, self.target) if like is None else ():
            create(topic) if create else create_and_wait(self.bootstrap, topic, PARTITIONS)
        java = ["java", *QUICK_START, "-Xmx160m", "-cp", f"{classes}:{libs}/*", SOURCE.stem]
        self._command = [*java, self.bootstrap, self.name, self.source, self.target, guarantee]
        self._settings = settings
        self._folder = folder
        self._processes = [self._start(place) for place in range(instances)]
        self._producer = Producer(
            {"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
        )
        self.sent: dict[str, int] = defaultdict(int)

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        with (self._folder / f"said-{place}").open("ab") as said:
            state = str(self._folder / f"state-{place}")
            return subprocess.Popen([*self._command, state, *self._settings], stdout=said, stderr=said)

    def add(self, place: int) -> None:
        """Start one more instance."""
        self._processes.append(self._start(place))

    def kill(self, place: int) -> None:
        self._processes[place].kill()
        self._processes[place].wait()
        self._processes[place] = self._start(place)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def send(self, count: int) -> None:
        for number in range(count):
            word = f"word-{number % WORDS}"
            self.sent[word] += 1
            self._producer.produce(self.source, word, partition=number % PARTITIONS)
        assert self._producer.flush(30) == 0

    def counted(self) -> dict[str, list[int]]:
        """Return the committed counts of every word in order."""
        found: dict[str, list[int]] = defaultdict(list)
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "nobody", "log_level": 0}
        settings |= {"isolation.level": "read_committed"}
        consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
        consumer.assign([TopicPartition(self.target, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
        ends, deadline = 0, time.monotonic() + 30
        while ends < PARTITIONS:
            assert time.monotonic() < deadline, "the last stable offset was not reached"
            message = consumer.poll(1)
            if message is not None and message.error():
                ends += 1
            elif message is not None:
                found[message.key().decode()].append(int(message.value()))
        consumer.close()
        return found

    def arrived(self) -> bool:
        """Whether the final count of every word was written, ignoring duplicates."""
        found = self.counted()
        return all(found[word] and max(found[word]) >= count for word, count in self.sent.items())

    def expected(self) -> dict[str, list[int]]:
        return {word: list(range(1, count + 1)) for word, count in self.sent.items()}


def test_word_count_at_least_once(node: Node, tmp_path: Path) -> None:
    """Start with the topics, the group and the assignor that Kafka Streams creates for itself."""
    application = Application(node, "at_least_once", tmp_path, instances=2)
    try:
        application.send(210)
        eventually(application.arrived, timeout=60, every=0.5, what="all counts")
        found = application.counted()
        assert all(set(counts) <= set(found[word]) for word, counts in application.expected().items()), found
        admin = AdminClient({"bootstrap.servers": application.bootstrap, "log_level": 0})
        assert internal_topics(admin, application.name) == {
            "counts-changelog": (PARTITIONS, "compact", "604800000"),
            "words-repartition": (PARTITIONS, "delete", "-1"),
        }
        group = admin.describe_consumer_groups([application.name])[application.name].result(20)
        assert (group.partition_assignor, group.state.name, len(group.members)) == ("stream", "STABLE", 2)
    finally:
        application.stop()


def internal_topics(admin: AdminClient, application: str) -> dict[str, tuple[int, str, str]]:
    """Return partitions, cleanup policy and retention of the internal topics."""
    topics = admin.list_topics(timeout=20).topics
    found = {}
    for name in topics:
        end = name.removeprefix(f"{application}-")
        if end == name or end in ("in", "out"):
            continue
        asked = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)])
        config = next(iter(asked.values())).result(20)
        found[end] = (
            len(topics[name].partitions),
            config["cleanup.policy"].value,
            config["retention.ms"].value,
        )
    return found


def test_word_count_exactly_once_under_kill_9(node: Node, tmp_path: Path) -> None:
    application = Application(node, "exactly_once_v2", tmp_path, INSTANCES)
    chance = random.Random(11)
    try:
        for step in range(KILLS):
            application.send(A_STEP)
            eventually(application.arrived, timeout=60, every=0.2, what=f"the counts before kill {step}")
            application.send(A_STEP)
            # The kill hits an instance at a random moment while it processes the new records.
            time.sleep(chance.uniform(0.0, 0.4))
            if step % 3 == 2:
                node.kill()
                node.restart()
            else:
                application.kill(chance.randrange(INSTANCES))
        eventually(application.arrived, timeout=60, every=0.5, what="all counts")
        assert application.counted() == application.expected()
    finally:
        application.stop()
