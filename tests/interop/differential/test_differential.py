"""The same raw requests to Apache Kafka and to Moldau: the responses must be equal, field by field.

Ids, ports, times and sizes are normalised first (`differential/normal.py`); the scenes are in
`differential/scenes`. A response that differs is a bug or has an entry in `KNOWN_DIFFERENCES` with its
reason, which `docs/COMPATIBILITY.md` documents. An entry that matches no difference any more fails, too.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.base.errors import ErrorCode
from moldau.protocol.apis import APIS
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.server.dispatch.apis import served_apis
from moldau.server.settings import BROKER, CONTROLLER
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.interop.conftest import Node
from tests.interop.differential.broker import Asked, Broker
from tests.interop.differential.normal import differences
from tests.interop.differential.scenes import DISTURBING, SCENES
from tools.compatibility.tables import NOT_SERVED

pytestmark = pytest.mark.interop

RUN = uuid.uuid4().hex[:6]
#: Responses that no broker can return: API, version (None: any), success or error, and why.
NEVER = (
    (1, 4, False, "Fetch at a controller: every request is invalid, and version 4 has no top-level error"),
    (9, 1, False, "OffsetFetch: a missing commit is no error"),
    (10, 0, False, "FindCoordinator: every group has a coordinator"),
    (15, 0, False, "DescribeGroups: an unknown group is Dead"),
    (16, None, False, "ListGroups: no field can be invalid"),
    (17, None, True, "SaslHandshake: the listeners have no SASL"),
    (18, 0, False, "ApiVersions: no field can be invalid"),
    (29, None, True, "DescribeAcls: there is no authorizer"),
    (30, None, True, "CreateAcls: there is no authorizer"),
    (31, None, True, "DeleteAcls: there is no authorizer"),
    (35, None, False, "DescribeLogDirs: no directory has failed"),
    (36, None, True, "SaslAuthenticate: the listeners have no SASL"),
    (38, None, True, "CreateDelegationToken: clients without a login are refused"),
    (39, None, True, "RenewDelegationToken: clients without a login are refused"),
    (40, None, True, "ExpireDelegationToken: clients without a login are refused"),
    (41, None, True, "DescribeDelegationToken: clients without a login are refused"),
    (46, None, False, "ListPartitionReassignments: unknown partitions are omitted"),
    (60, 0, None, "DescribeCluster: version 0 always succeeds at brokers and fails at controllers"),
    (62, 0, True, "BrokerRegistration: version 0 has no log directories, which are required"),
    (66, 0, False, "ListTransactions: no field can be invalid"),
    (70, None, False, "ControllerRegistration: Apache Kafka's controller resigns when it refuses one"),
    (74, 0, False, "ListConfigResources: no field can be invalid"),
    (90, None, False, "DescribeShareGroupOffsets: unknown partitions have no offset, which is no error"),
)


class Known(NamedTuple):
    """Intended differences whose scene, label and line match these patterns, with the reason."""

    scene: str
    label: str
    line: str
    reason: str


KNOWN_DIFFERENCES = (
    Known(
        "share groups, sessions",
        "v2 A an unknown topic",
        ".*",
        "An unknown topic id is UNKNOWN_TOPIC_ID; Apache Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "(produce|transactions), .*|several connections, (idempotence|settings)",
        ".*",
        r".*error_message: Apache None, Moldau 'a text'",
        "Apache Kafka gives a reason only with record errors; Moldau always says why a batch was refused.",
    ),
    Known(
        "produce, .*",
        ".*",
        r".*log_start_offset: Apache 0, Moldau -1",
        "With INVALID_RECORD Apache Kafka sometimes returns the log start offset; no client uses it.",
    ),
    Known(
        "produce, null records",
        ".*",
        ".*no response within seconds.*",
        "Apache Kafka never responds; Moldau answers INVALID_RECORD.",
    ),
    Known(
        "produce, invalid batches",
        "codec [567]",
        ".*error_code: Apache -1, Moldau 76",
        "UNSUPPORTED_COMPRESSION_TYPE says more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "produce, invalid batches",
        "length 2147483647",
        ".*error_code: Apache -1, Moldau 87",
        "INVALID_RECORD says more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "produce, recompression",
        "uncompressed, garbage",
        ".*",
        "A batch with the topic's codec is not decompressed, so its records are not validated.",
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
        "A negative limit means 0 and returns the first batch; Apache Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "(fetch|several connections), deleted topics",
        "v.*",
        ".*(error_code: Apache (3|103), Moldau 100|aborted_transactions: Apache None, Moldau \\[\\])",
        "A request by the id of a deleted topic gets UNKNOWN_TOPIC_ID, with or without a session or a wait.",
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
        "The response says that the topic cannot be created, so that clients do not retry.",
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
        "An error has a message, also where Apache Kafka has none.",
    ),
    Known(
        "alter configs",
        "v[01] an unknown operation, .*",
        ".*Apache (-1, Moldau 42|None, Moldau 'a text')",
        "INVALID_REQUEST and a message say more than UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "controller, alter configs",
        "v[012] (old form, )?(set to null|twice the same|a broker, (read only|bad)|another broker"
        "|an unknown type|the same resource twice).*",
        ".*",
        "Configs are validated on the controller listener as on brokers; Apache Kafka's controller "
        "relies on its brokers for some checks.",
    ),
    Known(
        "quorum, snapshots",
        "v[01] (another topic|another partition|an old epoch|a future epoch|a negative position"
        "|after its end|an unknown snapshot|a snapshot at offset 0)",
        ".*",
        "A request for an unavailable snapshot is answered with the reason; Apache Kafka cannot encode "
        "its answer and fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "SCRAM users|tokens without a login",
        "controller, .*describe .*",
        ".*",
        "Controllers serve what they announce; Apache Kafka's announce these two APIs and fail with "
        "UNKNOWN_SERVER_ERROR.",
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
    """The known differences that occurred; all must occur."""
    return set()


@pytest.fixture(scope="session")
def asked() -> set[Asked]:
    """The calls of all scenes."""
    return set()


@pytest.fixture(scope="session")
def separate_nodes(libs: Path) -> Iterator[tuple[Node, Node]]:
    """Separate nodes of Apache Kafka and Moldau for scenes that would disturb others."""
    config = {"metadata.log.max.snapshot.interval.ms": 1000}
    apache_twice = os.environ.get("MOLDAU_TEST_BROKER") == "apache"
    with ApacheCluster(libs=libs, config=config) as apache:
        other = ApacheCluster(libs=libs, config=config) if apache_twice else Cluster(config=config)
        with other as moldau:
            yield apache, moldau


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> tuple[Node, Node]:
    """The nodes for a scene."""
    if request.node.callspec.params["name"] in DISTURBING:
        found: tuple[Node, Node] = request.getfixturevalue("separate_nodes")
        return found
    return request.getfixturevalue("apache"), request.getfixturevalue("moldau")


def compare(
    name: str, scene: Callable[[Broker], None], apache: Node, moldau: Node, asked: set[Asked] | None = None
) -> list[str]:
    """Return the differences of a scene; its calls are added to `asked`."""
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
    """Moldau announces no other APIs, and all except those listed in COMPATIBILITY.md."""

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
    """Leader epochs are higher then: a request with an old epoch gets the new epoch and leader."""

    def before(broker: Broker) -> None:
        broker.fill(broker.topic("restarted"), 2)

    def after(broker: Broker) -> None:
        topic = broker.name("restarted")
        described = broker.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
        broker.knows(topic, described.topics[0].topic_id)
        now = described.topics[0].partitions[0].leader_epoch

        def fetch(epoch: int, version: int) -> FetchResponse:
            asked = FetchPartition(
                partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=epoch
            )
            topics = [FetchTopic(topic=topic, topic_id=broker.topic_ids[topic], partitions=[asked])]
            response: FetchResponse = broker.call(FetchRequest(min_bytes=0, topics=topics), version)
            return response

        def is_applied() -> bool:
            return fetch(now, 12).responses[0].partitions[0].error_code != ErrorCode.UNKNOWN_LEADER_EPOCH

        # Apache Kafka answers Metadata with the new epoch before its replicas know it.
        eventually(is_applied, what="the leader knows its epoch")
        for version in (9, 12, 15, 16, 18):
            for label, epoch in (("old", 0), ("present", now), ("future", now + 1)):
                answer = fetch(epoch, version)
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
