"""CreateAcls, DescribeAcls and DeleteAcls, request by request, with Moldau and with Apache Kafka.

The requests are the same on both, on the broker and on the controller listener; the responses must be equal,
with ACLs in any order. Requests with UNKNOWN, ANY or MATCH for which Apache Kafka closes the connection are
listed in docs/COMPATIBILITY.md and not sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.schema import Message
from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.acl.loading import STANDARD_AUTHORIZER
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.unit.security.acl.acls import acl

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

VERSIONS = (1, 2, 3)
SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
STORED = [
    acl(text)
    for text in (
        "ALLOW User:alice READ TOPIC orders",
        "ALLOW User:alice WRITE TOPIC orders @10.0.0.1",
        "DENY User:bob ALL TOPIC ord*",
        "ALLOW User:* DESCRIBE TOPIC *",
        "ALLOW User:alice READ GROUP orders",
        "ALLOW User:alice READ GROUP o*",
        "ALLOW Group:admins ALTER CLUSTER kafka-cluster",
        "ALLOW User:alice WRITE TRANSACTIONAL_ID orders",
        "ALLOW User:alice DESCRIBE DELEGATION_TOKEN token",
        "ALLOW User:alice CREATE_TOKENS USER User:bob",
        "ALLOW User: TWO_PHASE_COMMIT TOPIC orders",
    )
]


@pytest.fixture(scope="module")
def both(libs: Path) -> Iterator[tuple[ApacheCluster, Cluster]]:
    with ApacheCluster(config=SETTINGS, libs=libs) as apache, Cluster(config=SETTINGS) as moldau:
        yield apache, moldau


def creation(binding: AclBinding, **changes: Any) -> AclCreation:
    fields = binding._asdict()
    fields["resource_pattern_type"] = fields.pop("pattern_type")
    return AclCreation(**(fields | changes))


def wanted(**changes: Any) -> dict[str, Any]:
    anything = {
        "resource_type_filter": ResourceType.ANY, "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY, "principal_filter": None, "host_filter": None,
        "operation": AclOperation.ANY, "permission_type": PermissionType.ANY,
    }  # fmt: skip
    return anything | changes


FILTERS = {
    "everything": wanted(),
    "a type": wanted(resource_type_filter=ResourceType.TOPIC),
    "a name": wanted(resource_name_filter="orders"),
    "a literal name": wanted(resource_name_filter="orders", pattern_type_filter=PatternType.LITERAL),
    "a prefix": wanted(resource_name_filter="ord", pattern_type_filter=PatternType.PREFIXED),
    "prefixes": wanted(pattern_type_filter=PatternType.PREFIXED),
    "what matches": wanted(resource_name_filter="orders", pattern_type_filter=PatternType.MATCH),
    "what matches *": wanted(resource_name_filter="*", pattern_type_filter=PatternType.MATCH),
    "matching of all names": wanted(pattern_type_filter=PatternType.MATCH),
    "a principal": wanted(principal_filter="User:alice"),
    "a host": wanted(host_filter="10.0.0.1"),
    "every host": wanted(host_filter="*"),
    "an operation": wanted(operation=AclOperation.READ),
    "all operations": wanted(operation=AclOperation.ALL),
    "denials": wanted(permission_type=PermissionType.DENY),
    "the empty name": wanted(resource_name_filter=""),
    "the cluster": wanted(resource_type_filter=ResourceType.CLUSTER, resource_name_filter="kafka-cluster"),
    "an unknown type": wanted(resource_type_filter=99),
    "an unknown pattern": wanted(pattern_type_filter=99),
    "an unknown operation": wanted(operation=99),
    "an unknown permission": wanted(permission_type=99),
}
ORDERS = acl("ALLOW User:alice READ TOPIC new-orders")
CREATIONS = {
    "nothing": [],
    "one": [creation(ORDERS)],
    "twice": [creation(ORDERS), creation(ORDERS)],
    "cluster by another name": [creation(ORDERS, resource_type=ResourceType.CLUSTER)],
    "cluster, prefixed": [
        creation(
            ORDERS,
            resource_type=ResourceType.CLUSTER,
            resource_name="kafka-cluster",
            resource_pattern_type=PatternType.PREFIXED,
        )
    ],
    "no name": [creation(ORDERS, resource_name="")],
    "unknown type": [creation(ORDERS, resource_type=99)],
    "unknown pattern": [creation(ORDERS, resource_pattern_type=99)],
    "unknown operation": [creation(ORDERS, operation=99)],
    "unknown permission": [creation(ORDERS, permission_type=99)],
    "no principal type": [creation(ORDERS, principal="alice")],
    "no principal": [creation(ORDERS, principal="")],
    "no host": [creation(ORDERS, host="")],
    "senseless operation": [creation(ORDERS, operation=AclOperation.CREATE_TOKENS)],
    "good and bad": [creation(ORDERS), creation(ORDERS, principal="x"), creation(ORDERS, resource_name="")],
    "several mistakes": [creation(ORDERS, resource_type=99, operation=99, principal="x", resource_name="")],
}


class Transcript:
    """The responses of a node, with ACLs in a fixed order."""

    def __init__(self, node: ApacheCluster | Cluster, *, controller: bool) -> None:
        port = node.controller_port if controller else int(node.bootstrap_servers.rpartition(":")[2])
        self.wire = Wire(f"127.0.0.1:{port}")
        self.lines: list[str] = []

    def ask(self, label: str, request: Message, version: int) -> None:
        self.lines.append(f"{label}, version {version}: {in_order(self.wire.call(request, version))}")

    def reset(self) -> None:
        """Store `STORED` alone."""
        self.wire.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted())]), 3)
        self.wire.call(CreateAclsRequest(creations=[creation(binding) for binding in STORED]), 3)
        eventually(lambda: self._described() == len(STORED), what="the authorizer has the ACLs")

    def _described(self) -> int:
        answer = self.wire.call(DescribeAclsRequest(**wanted()), 3)
        return sum(len(resource.acls) for resource in answer.resources)


def in_order(answer: Any) -> str:
    answer.throttle_time_ms = 0
    for resource in getattr(answer, "resources", ()):
        resource.acls.sort(key=repr)
    for result in getattr(answer, "filter_results", ()):
        result.matching_acls.sort(key=repr)
    if hasattr(answer, "resources"):
        answer.resources.sort(key=repr)
    return repr(answer)


def describe(transcript: Transcript) -> None:
    transcript.reset()
    for label, fields in FILTERS.items():
        for version in VERSIONS:
            transcript.ask(label, DescribeAclsRequest(**fields), version)


def create(transcript: Transcript) -> None:
    transcript.reset()
    for label, creations in CREATIONS.items():
        for version in VERSIONS:
            transcript.ask(label, CreateAclsRequest(creations=creations), version)


def delete(transcript: Transcript) -> None:
    for version in VERSIONS:
        transcript.reset()
        transcript.ask("nothing", DeleteAclsRequest(), version)
        for label, fields in FILTERS.items():
            if label != "everything":
                transcript.ask(label, DeleteAclsRequest(filters=[DeleteAclsFilter(**fields)]), version)
        transcript.reset()
        filters = [DeleteAclsFilter(**fields) for fields in FILTERS.values()]
        transcript.ask("all filters", DeleteAclsRequest(filters=filters), version)


@pytest.mark.parametrize("listener", ["broker", "controller"])
@pytest.mark.parametrize("scene", [describe, create, delete], ids=lambda scene: scene.__name__)
def test_acl_requests_are_answered_like_apache_kafka(
    both: tuple[ApacheCluster, Cluster], scene: Any, listener: str
) -> None:
    transcripts = []
    for node in both:
        transcript = Transcript(node, controller=listener == "controller")
        with transcript.wire:
            scene(transcript)
        transcripts.append(transcript.lines)
    theirs, ours = transcripts
    different = [
        f"Apache {first}\nMoldau {second}"
        for first, second in zip(theirs, ours, strict=True)
        if first != second
    ]
    assert not different, "\n" + "\n\n".join(different)
