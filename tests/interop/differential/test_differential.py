"""The same raw requests to Apache Kafka and to Moldau: the answers must be the same, field by field.

Ids, ports, times and sizes are made alike first (`differential/normal.py`); the scenes are in
`differential/*_scenes.py`. An answer that differs is a bug, or has a line in `KNOWN_DIFFERENCES` with its
reason, which `docs/COMPATIBILITY.md` tells the users. A line that nothing differs by any more fails too.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.protocol.apis import APIS
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.server.dispatch.apis import served_apis
from moldau.server.settings import BROKER, CONTROLLER
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.wire.wire import Wire
from tests.interop.conftest import Node
from tests.interop.differential.broker import Asked, Broker
from tests.interop.differential.normal import differences
from tests.interop.differential.scenes import DISTURBING, SCENES
from tools.compatibility.tables import NOT_SERVED

pytestmark = pytest.mark.interop

RUN = uuid.uuid4().hex[:6]
#: Answers that no broker can be made to give: API, version (None: any), good or bad, and why.
NEVER = (
    (1, 4, False, "Fetch at a controller: everything is wrong, and there is no field to say so"),
    (9, 1, False, "OffsetFetch: what was never committed is no error"),
    (10, 0, False, "FindCoordinator: every group has a coordinator"),
    (15, 0, False, "DescribeGroups: a group that does not exist is dead"),
    (16, None, False, "ListGroups: nothing is asked that could be wrong"),
    (18, 0, False, "ApiVersions: nothing is asked that could be wrong"),
    (29, None, True, "DescribeAcls: there is no authorizer"),
    (30, None, True, "CreateAcls: there is no authorizer"),
    (31, None, True, "DeleteAcls: there is no authorizer"),
    (35, None, False, "DescribeLogDirs: no directory has failed"),
    (46, None, False, "ListPartitionReassignments: what is not there is left out"),
    (60, 0, None, "DescribeCluster: brokers are listed at brokers only, and that is all one can ask"),
    (62, 0, True, "BrokerRegistration: a broker names its directories, which this version cannot"),
    (66, 0, False, "ListTransactions: nothing is asked that could be wrong"),
    (70, None, False, "ControllerRegistration: over what it refuses Apache Kafka's controller resigns"),
    (74, 0, False, "ListConfigResources: nothing is asked that could be wrong"),
    (90, None, False, "DescribeShareGroupOffsets: what is not there has no offset, which is no error"),
)


class Known(NamedTuple):
    """Differences whose scene, label and line match these patterns, and why they are meant."""

    scene: str
    label: str
    line: str
    reason: str


KNOWN_DIFFERENCES = (
    Known(
        "share groups, sessions",
        "v2 A a topic that is not there",
        ".*",
        "An unknown topic id is answered as such; Apache Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "(produce|transactions), .*|several connections, (idempotence|settings)",
        ".*",
        r".*error_message: Apache None, Moldau 'a text'",
        "Apache Kafka gives a reason only with record errors; we always say why a batch was refused.",
    ),
    Known(
        "produce, .*",
        ".*",
        r".*log_start_offset: Apache 0, Moldau -1",
        "Next to INVALID_RECORD Apache Kafka sometimes tells where the log starts; no client looks at it.",
    ),
    Known(
        "produce, null records",
        ".*",
        ".*no answer within seconds.*",
        "Apache Kafka never answers; we answer INVALID_RECORD.",
    ),
    Known(
        "produce, batches that lie",
        "codec [567]",
        ".*error_code: Apache -1, Moldau 76",
        "UNSUPPORTED_COMPRESSION_TYPE says more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "produce, batches that lie",
        "length 2147483647",
        ".*error_code: Apache -1, Moldau 87",
        "INVALID_RECORD says more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "produce, recompression",
        "uncompressed, garbage",
        ".*",
        "A batch that has the topic's codec already is not opened, so its records are not looked at.",
    ),
    Known(
        "fetch, every version",
        "v.* an unknown isolation level",
        ".*error_code: Apache -1, Moldau 42",
        "INVALID_REQUEST says more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "fetch, limits",
        ".*max bytes -1",
        ".*",
        "A negative limit means 0, so the first batch comes; Apache Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "(fetch|several connections), deleted topics",
        "v.*",
        ".*(error_code: Apache (3|103), Moldau 100|aborted_transactions: Apache None, Moldau \\[\\])",
        "A deleted topic is UNKNOWN_TOPIC_ID to who names it by id, whether in a session, waiting or not.",
    ),
    Known(
        "metadata",
        "v1[23] neither id nor name",
        ".*error_code: Apache -1, Moldau 42",
        "INVALID_REQUEST says more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "metadata, auto creation",
        "a name that collides",
        ".*error_code: Apache 3, Moldau 17",
        "The answer says that the topic cannot be created, so the client does not retry in vain.",
    ),
    Known(
        "describe topic partitions",
        "bad names",
        ".*",
        "A bad name is that topic's error (INVALID_TOPIC_EXCEPTION); Apache Kafka fails the whole request.",
    ),
    Known(
        "describe producers",
        ".*",
        ".*error_message: Apache None, Moldau 'a text'",
        "An error has a text, also where Apache Kafka has none.",
    ),
    Known(
        "alter configs",
        "v[01] an unknown operation, .*",
        ".*Apache (-1, Moldau 42|None, Moldau 'a text')",
        "INVALID_REQUEST and a sentence say more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "controller, alter configs",
        "v[012] (old form, )?(set to null|twice the same|a broker, (read only|bad)|another broker"
        "|an unknown type|the same resource twice).*",
        ".*",
        "Settings are checked at the controller's listener as at the brokers'; Apache Kafka's controller "
        "relies on its brokers for some of it.",
    ),
    Known(
        "quorum, snapshots",
        "v[01] (another topic|another partition|an old epoch|a future epoch|a negative position"
        "|behind its end|one that is not there|the first of all)",
        ".*",
        "A request for an unavailable snapshot is answered with the reason; Apache Kafka cannot encode "
        "its answer and fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "(controller, )?elect leaders",
        "v[12] type 7 nothing",
        "error_code: Apache 0, Moldau 42",
        "An election type that does not exist is refused, also for no partitions.",
    ),
)


@pytest.fixture(scope="session")
def met() -> set[Known]:
    """The known differences that were met; all must be."""
    return set()


@pytest.fixture(scope="session")
def asked() -> set[Asked]:
    """What all scenes together have asked."""
    return set()


@pytest.fixture(scope="session")
def of_their_own(libs: Path) -> Iterator[tuple[Node, Node]]:
    """Apache Kafka and Moldau, for scenes that would disturb the others."""
    config = {"metadata.log.max.snapshot.interval.ms": 1000}
    apache_twice = os.environ.get("MOLDAU_TEST_BROKER") == "apache"
    with ApacheCluster(libs=libs, config=config) as apache:
        other = ApacheCluster(libs=libs, config=config) if apache_twice else Cluster(config=config)
        with other as moldau:
            yield apache, moldau


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> tuple[Node, Node]:
    """The nodes that a scene is played on."""
    if request.node.callspec.params["name"] in DISTURBING:
        found: tuple[Node, Node] = request.getfixturevalue("of_their_own")
        return found
    return request.getfixturevalue("apache"), request.getfixturevalue("moldau")


def compare(
    name: str, scene: Callable[[Broker], None], apache: Node, moldau: Node, asked: set[Asked] | None = None
) -> list[str]:
    """Every difference that the scene shows; what it asked is added to `asked`."""
    brokers = [Broker(node.port, node.controller_port, RUN) for node in (apache, moldau)]
    for broker in brokers:
        try:
            scene(broker)
        finally:
            broker.close()
    if asked is not None:
        asked.update(brokers[1].asked)
    theirs, ours = (broker.transcript for broker in brokers)
    assert [label for label, _ in theirs] == [label for label, _ in ours]
    return [
        f"[{label}] {line}"
        for (label, first), (_, second) in zip(theirs, ours, strict=True)
        for line in differences(first, second)
    ]


def known(scene: str, difference: str) -> Known | None:
    label, _, line = difference[1:].partition("] ")
    for each in KNOWN_DIFFERENCES:
        if (
            re.fullmatch(each.scene, scene)
            and re.fullmatch(each.label, label)
            and re.fullmatch(each.line, line, re.DOTALL)
        ):
            return each
    return None


@pytest.mark.parametrize("name", SCENES)
def test_moldau_answers_like_apache_kafka(
    name: str, pair: tuple[Node, Node], met: set[Known], asked: set[Asked]
) -> None:
    found = compare(name, SCENES[name], *pair, asked)
    explained = {difference: known(name, difference) for difference in found}
    met.update(each for each in explained.values() if each is not None)
    unexplained = [difference for difference, reason in explained.items() if reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)


def skip_unless_all_ran(request: pytest.FixtureRequest) -> None:
    ran = [
        item
        for item in request.session.items
        if item.name.startswith("test_moldau_answers_like_apache_kafka")
    ]
    if len(ran) < len(SCENES):
        pytest.skip("only some of the scenes were run")


def test_every_api_is_compared_for_success_and_failure_in_its_first_and_last_version(
    request: pytest.FixtureRequest, asked: set[Asked]
) -> None:
    skip_unless_all_ran(request)
    wanted = {
        Asked(key, version, role == CONTROLLER, good)
        for role in (BROKER, CONTROLLER)
        for key, served in served_apis(role).items()
        for version in (served.min_version, served.max_version)
        for good in (True, False)
    }
    missing = sorted(
        f"{APIS[each.api_key].name} v{each.version}, {'controller' if each.controller else 'broker'}, "
        f"{'good' if each.good else 'bad'}"
        for each in wanted - asked
        if not any(
            key == each.api_key and version in (None, each.version) and good in (None, each.good)
            for key, version, good, _ in NEVER
        )
    )
    assert not missing, "\n" + "\n".join(missing)


def test_every_known_difference_is_still_one(request: pytest.FixtureRequest, met: set[Known]) -> None:
    skip_unless_all_ran(request)
    if os.environ.get("MOLDAU_TEST_BROKER") == "apache":
        pytest.skip("both brokers are Apache Kafka")
    gone = [each for each in KNOWN_DIFFERENCES if each not in met]
    assert not gone, "\n".join(f"{each.scene}, {each.label}: {each.reason}" for each in gone)


def test_announced_apis_match_apache_kafka(apache: Node, moldau: Node) -> None:
    """Nothing that Apache Kafka does not announce, and all of it but what COMPATIBILITY.md says."""

    def announced(port: int) -> set[int]:
        with Wire(f"127.0.0.1:{port}") as wire:
            asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            return {each.api_key for each in wire.call(asked, 4).api_keys}

    expected = {key for reason in NOT_SERVED for key in reason.keys}
    if os.environ.get("MOLDAU_TEST_BROKER") == "apache":
        expected = set()
    missing = set()
    for theirs, ours in ((apache.port, moldau.port), (apache.controller_port, moldau.controller_port)):
        assert announced(ours) - announced(theirs) == set()
        missing |= announced(theirs) - announced(ours)
    assert missing <= expected


def test_answers_match_after_a_restart(apache: Node, moldau: Node) -> None:
    """Leader epochs are higher then: a request with an old one is answered with the new epoch and leader."""

    def before(broker: Broker) -> None:
        broker.fill(broker.topic("restarted"), 2)

    def after(broker: Broker) -> None:
        topic = broker.name("restarted")
        described = broker.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
        broker.knows(topic, described.topics[0].topic_id)
        now = described.topics[0].partitions[0].leader_epoch
        for version in (9, 12, 15, 16, 18):
            for label, epoch in (("old", 0), ("present", now), ("future", now + 1)):
                asked = FetchPartition(
                    partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=epoch
                )
                topics = [FetchTopic(topic=topic, topic_id=broker.topic_ids[topic], partitions=[asked])]
                answer = broker.call(FetchRequest(min_bytes=0, topics=topics), version)
                for partition in answer.responses[0].partitions:
                    leader = partition.current_leader
                    if leader.leader_epoch == now:
                        partition.current_leader = type(leader)(leader_id=leader.leader_id, leader_epoch=9)
                broker.note(f"v{version} {label} epoch", answer)

    assert not compare("before a restart", before, apache, moldau)
    apache.restart()
    moldau.restart()
    found = compare("after a restart", after, apache, moldau)
    assert not found, "\n" + "\n".join(found)
