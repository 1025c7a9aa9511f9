"""A broker that answers the requests of the tools about offsets, records, log directories and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker


def listed_offsets(request: Any) -> Message:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=p.partition_index, offset=100 + p.partition_index
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def deleted_records(request: Any) -> Message:
    partitions = [
        DeleteRecordsPartitionResult(partition_index=0, low_watermark=5),
        DeleteRecordsPartitionResult(partition_index=1, error_code=1),
    ]
    return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="a", partitions=partitions)])


def described_log_dirs(request: Any) -> Message:
    partition = DescribeLogDirsPartition(
        partition_index=0, partition_size=9, offset_lag=1, is_future_key=True
    )
    topics = [DescribeLogDirsTopic(name=name, partitions=[partition]) for name in ("a", "b")]
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    def metadata(request: Any) -> Message:
        partitions = [MetadataResponsePartition(partition_index=i, leader_id=1) for i in range(3)]
        asked = request.topics
        names = ("__consumer_offsets", "a", "b") if asked is None else [topic.name for topic in asked]
        return fake.metadata(
            topics=[MetadataResponseTopic(name=name, partitions=partitions) for name in names]
        )

    def described(request: Any) -> Message:
        node = DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=fake.port, rack="r1")
        kind = request.endpoint_type
        return DescribeClusterResponse(
            cluster_id="the-id", controller_id=1, endpoint_type=kind, brokers=[node]
        )

    answers: dict[int, Callable[[Any], Message]] = {
        ApiKey.LIST_OFFSETS: listed_offsets,
        ApiKey.METADATA: metadata,
        ApiKey.DELETE_RECORDS: deleted_records,
        ApiKey.DESCRIBE_LOG_DIRS: described_log_dirs,
        ApiKey.DESCRIBE_CLUSTER: described,
    }
    fake = FakeBroker(answers)
    with fake:
        yield fake
