"""Java consumers as processes in one group: they join, leave, are killed and rejoin, with every protocol.

The same tests run on both brokers. `commitSync` can fail during a rebalance, which would stop a
member, so records are sent only while the group is stable.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.testing import Cluster
from tests.harness.apache.node import QUICK_START, ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.interop import jars
from tests.interop.conftest import Node

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parents[1] / "java" / "GroupMember.java"
PARTITIONS = 4
ALL = set(range(PARTITIONS))
#: Killed members are removed soon.
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
_CLASSIC = {"group.protocol": "classic", "session.timeout.ms": "4000", "heartbeat.interval.ms": "300"}
_ASSIGNOR = "partition.assignment.strategy"
_ASSIGNORS = "org.apache.kafka.clients.consumer"
EAGER = {**_CLASSIC, _ASSIGNOR: f"{_ASSIGNORS}.RangeAssignor"}
COOPERATIVE = {**_CLASSIC, _ASSIGNOR: f"{_ASSIGNORS}.CooperativeStickyAssignor"}
CONSUMER = {"group.protocol": "consumer"}
RANGE = {**CONSUMER, "group.remote.assignor": "range"}


@pytest.fixture(scope="module", params=["apache", "moldau"])
def node(request: pytest.FixtureRequest, libs: Path) -> Iterator[Node]:
    apache = request.param == "apache"
    with ApacheCluster(config=CONFIG, libs=libs) if apache else Cluster(config=CONFIG) as started:
        yield started


class Member:
    """A consumer in a separate process, and its output so far."""

    def __init__(self, arguments: list[str], said: Path) -> None:
        libs = jars.kafka_libs()
        classes = jars.compiled(SOURCE, libs, jars.KAFKA)
        command = ["java", *QUICK_START, "-Xmx100m", "-cp", f"{classes}:{libs}/*", SOURCE.stem, *arguments]
        self._said = said
        self._complained = said.with_suffix(".err")
        with said.open("wb") as output, self._complained.open("wb") as complaints:
            self.process = subprocess.Popen(command, stdout=output, stderr=complaints)

    def complaints(self) -> str:
        """Return the end of its error output."""
        return self._complained.read_text()[-3000:]

    def printed(self) -> list[tuple[str, str]]:
        lines = self._said.read_text().splitlines()
        return [(what, rest) for what, tab, rest in (line.partition("\t") for line in lines) if tab]

    def owned(self) -> set[int]:
        partitions: set[int] = set()
        for what, rest in self.printed():
            if what == "assigned":
                partitions |= set(map(int, rest.split()))
            elif what in ("revoked", "lost"):
                partitions -= set(map(int, rest.split()))
        return partitions

    def revoked(self) -> set[int]:
        return {int(each) for what, rest in self.printed() if what == "revoked" for each in rest.split()}

    def read(self) -> list[int]:
        return [int(rest) for what, rest in self.printed() if what == "read"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def leave(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        assert ("leaving", "") in self.printed(), self.printed()


class Group:
    """A topic, a group of the same name, and its members; records are distinct numbers."""

    def __init__(self, node: Node, settings: dict[str, str], folder: Path) -> None:
        self.name = f"java-group-{uuid.uuid4().hex[:6]}"
        self.subscription = self.name
        self.sent = 0
        create_and_wait(node.bootstrap_servers, self.name, PARTITIONS)
        common = {"bootstrap.servers": node.bootstrap_servers, "group.id": self.name}
        self._producer = Producer({"bootstrap.servers": node.bootstrap_servers, "log_level": 0})
        self._settings = {**common, **settings}
        self._folder = folder
        self.members: list[Member] = []

    def start(self, **settings: str) -> Member:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        pairs = [f"{name}={value}" for name, value in {**self._settings, **named}.items()]
        said = self._folder / f"said-{len(self.members)}"
        self.members.append(Member([self.subscription, *pairs], said))
        return self.members[-1]

    def settled(self, *members: Member) -> None:
        """Wait until these members have all partitions, each once and evenly distributed."""

        def found() -> bool:
            shares = [member.owned() for member in members]
            even = all(len(share) == PARTITIONS // len(members) for share in shares)
            return even and set().union(*shares) == ALL

        eventually(found, what=f"an even share each, of {len(members)}")

    def send_and_read(self) -> None:
        """Send a record to every partition and check that each is consumed exactly once."""
        self.sent += PARTITIONS
        for number in range(self.sent - PARTITIONS, self.sent):
            self._producer.produce(self.name, str(number), partition=number % PARTITIONS)
        assert self._producer.flush(20) == 0
        eventually(lambda: self.read() == list(range(self.sent)), what=f"{self.sent} records once")

    def read(self) -> list[int]:
        return sorted(number for member in self.members for number in member.read())


@pytest.fixture
def group(node: Node, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Group]:
    made = Group(node, request.param, tmp_path)
    yield made
    for member in made.members:
        member.kill()


_KINDS = {"eager": EAGER, "cooperative": COOPERATIVE, "consumer": CONSUMER, "consumer-range": RANGE}


@pytest.mark.parametrize("group", _KINDS.values(), ids=_KINDS, indirect=True)
def test_members_join_leave_and_are_killed(group: Group, request: pytest.FixtureRequest) -> None:
    first = group.start()
    group.settled(first)
    group.send_and_read()
    second = group.start()
    group.settled(first, second)
    group.send_and_read()
    eager = "eager" in request.node.callspec.id
    assert first.revoked() == (ALL if eager else second.owned())
    second.kill()
    group.settled(first)
    group.send_and_read()
    third = group.start()
    group.settled(first, third)
    group.send_and_read()
    third.leave()
    group.settled(first)
    group.send_and_read()
    first.leave()
    # The group is empty; the next member continues after the committed offsets.
    group.start()
    group.settled(group.members[-1])
    group.send_and_read()


_STATIC = {"eager": EAGER, "cooperative": COOPERATIVE, "consumer": CONSUMER}


@pytest.mark.parametrize("group", _STATIC.values(), ids=_STATIC, indirect=True)
def test_static_members_rejoin(group: Group, request: pytest.FixtureRequest) -> None:
    """A static member that restarts within its session keeps its partitions without a rebalance.

    In the consumer protocol the instance id of a killed member is released only after its session timeout.
    """
    first = group.start(group_instance_id="first")
    group.settled(first)
    second = group.start(group_instance_id="second")
    group.settled(first, second)
    group.send_and_read()
    shares, heard = (first.owned(), second.owned()), len(first.printed())
    new_protocol = "consumer" in request.node.callspec.id
    for end in (Member.leave,) if new_protocol else (Member.kill, Member.leave):
        end(second)
        second = group.start(group_instance_id="second")
        group.settled(first, second)
        assert (first.owned(), second.owned()) == shares
        assert [said for said in first.printed()[heard:] if said[0] != "read"] == []
        group.send_and_read()
    second.kill()
    group.settled(first)
    group.send_and_read()


@pytest.mark.parametrize("group", [CONSUMER], ids=["consumer"], indirect=True)
def test_patterns_are_those_of_re2(group: Group) -> None:
    """`(?P<name>...)` is an expression of RE2, and an error for Java."""
    group.subscription = f"pattern:(?P<topic>{group.name[:-1]}).{{1}}"
    first = group.start()
    group.settled(first)
    second = group.start()
    group.settled(first, second)
    group.send_and_read()
    second.kill()
    group.settled(first)
    group.send_and_read()
