"""The lines of `kafka.authorizer.logger` after the same refused requests, of Moldau and of Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topics import NewTopic
from moldau.protocol.messages.create_acls import CreateAclsRequest
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.schema import Message
from moldau.security.acl.loading import STANDARD_AUTHORIZER
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.wire import Wire
from tests.unit.security.acl.acls import acl

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
ACLS = (
    "ALLOW User:root ALL TOPIC *",
    "DENY User:* WRITE TOPIC ord* @127.0.0.1",
    "DENY User:ANONYMOUS READ TOPIC orders",
    "ALLOW User:ANONYMOUS DESCRIBE TOPIC orders",
    "ALLOW User:root READ GROUP secret",
    "ALLOW User:root WRITE TRANSACTIONAL_ID secret",
    "ALLOW User:root ALL CLUSTER kafka-cluster",
    # For the Envelopes of Apache Kafka's broker.
    "ALLOW User:ANONYMOUS CLUSTER_ACTION CLUSTER kafka-cluster",
)


@pytest.fixture(scope="module")
def both(libs: Path) -> Iterator[tuple[ApacheCluster, Cluster]]:
    with ApacheCluster(config=SETTINGS, libs=libs) as apache, Cluster(config=SETTINGS) as moldau:
        for node in (apache, moldau):
            with AdminClient(node.bootstrap_servers) as admin:
                checked(admin.create_topics([NewTopic("orders", partitions=2, replication_factor=1)]))
                checked(admin.create_acls(map(acl, ACLS)))
            # Apache Kafka applies ACLs shortly after its answer.
            eventually(lambda node=node: is_refused(node), what="the ACLs are applied")
        yield apache, moldau


def is_refused(node: ApacheCluster | Cluster) -> bool:
    with Wire(node.bootstrap_servers) as wire:
        answer = wire.call(produce(), 9).responses[0]
    return bool(answer.partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def produce() -> ProduceRequest:
    parts = [PartitionProduceData(index=index, records=memoryview(batch())) for index in (0, 1)]
    return ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="orders", partition_data=parts)]
    )


def fetch() -> FetchRequest:
    parts = [FetchPartition(partition=index, partition_max_bytes=1000) for index in (0, 1)]
    topics = [FetchTopic(topic="orders", partitions=parts)]
    return FetchRequest(max_wait_ms=0, max_bytes=1000, topics=topics)


def offset_commit(group: str) -> OffsetCommitRequest:
    parts = [OffsetCommitRequestPartition(partition_index=index) for index in (0, 1)]
    topics = [OffsetCommitRequestTopic(name="orders", partitions=parts)]
    return OffsetCommitRequest(group_id=group, topics=topics)


def list_offsets() -> ListOffsetsRequest:
    parts = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1)]
    topics = [ListOffsetsTopic(name=name, partitions=parts) for name in ("orders", "hidden")]
    return ListOffsetsRequest(replica_id=-1, topics=topics)


REQUESTS: dict[str, tuple[Message, int]] = {
    "produce": (produce(), 9),
    "fetch": (fetch(), 11),
    "list offsets": (list_offsets(), 6),
    "metadata": (MetadataRequest(topics=[MetadataRequestTopic(name="hidden")]), 8),
    "metadata of all": (MetadataRequest(topics=None), 8),
    "create topics": (
        CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]),
        5,
    ),
    "delete topics": (DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]), 6),
    "create partitions": (
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=5)]),
        3,
    ),
    "describe configs": (
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=2, resource_name="orders", configuration_keys=None),
                DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None),
            ]
        ),
        4,
    ),
    "find group": (FindCoordinatorRequest(key="secret", key_type=0), 3),
    "find transaction": (FindCoordinatorRequest(key="secret", key_type=1), 3),
    "heartbeat": (HeartbeatRequest(group_id="secret", generation_id=1, member_id="m"), 4),
    "offset commit": (offset_commit("secret"), 8),
    "offset commit of topics": (offset_commit("free"), 8),
    "init producer id": (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4),
    "init transaction": (InitProducerIdRequest(transactional_id="secret", transaction_timeout_ms=1000), 4),
    "describe acls": (DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1), 3),
    "create acls": (CreateAclsRequest(), 3),
}


_LINE = re.compile(r"Principal = .* based on rule .*?(?= \(kafka\.authorizer)")


def audit_lines(node: ApacheCluster | Cluster) -> list[str]:
    """Return the lines of the audit log; Moldau counts a resource once (docs/COMPATIBILITY.md)."""
    text = re.sub(r"resourceRefCount = [1-9]\d*", "resourceRefCount = N", node.log_file.read_text())
    return _LINE.findall(text)


@pytest.mark.parametrize("name", REQUESTS)
def test_refusals_are_logged_like_apache_kafka(both: tuple[ApacheCluster, Cluster], name: str) -> None:
    request, version = REQUESTS[name]
    # The last line of every request: what it logs is complete.
    end, end_version = REQUESTS["describe acls"]
    logged = []
    for node in both:
        before = len(audit_lines(node))
        with Wire(node.bootstrap_servers) as wire:
            wire.call(request, version)
            wire.call(end, end_version)
        eventually(
            lambda node=node, before=before: "for request = DescribeAcls" in str(audit_lines(node)[before:])
        )
        logged.append(sorted(audit_lines(node)[before:]))
    theirs, ours = logged
    assert ours == theirs
