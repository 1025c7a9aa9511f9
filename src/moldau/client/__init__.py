"""Python APIs for any Kafka-protocol cluster: producer, consumer and admin client.

Names are imported when first used, so the admin client alone does not load librdkafka.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.base.errors import ErrorCode, KafkaError
    from moldau.base.ids import TopicPartition
    from moldau.client.admin.client import AdminClient, AsyncAdminClient, checked
    from moldau.client.admin.topic_types import NewTopic
    from moldau.client.aio import AsyncConsumer, AsyncProducer
    from moldau.client.consumer.consumer import Consumer, WakeupError
    from moldau.client.consumer.deserialization import RecordDeserializationError
    from moldau.client.consumer.rebalance import RebalanceListener
    from moldau.client.interceptors import ConsumerInterceptor, ProducerInterceptor
    from moldau.client.librdkafka.errors import ClientError
    from moldau.client.partitioners import (
        DefaultPartitioner,
        Partitioner,
        RoundRobinPartitioner,
        StickyPartitioner,
        partition_for_key,
    )
    from moldau.client.producer.producer import Producer
    from moldau.client.records import (
        ConsumerRecord,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        PartitionInfo,
        ProducerRecord,
        RecordMetadata,
    )

_HOMES = {
    "AdminClient": "client.admin.client",
    "AsyncAdminClient": "client.admin.client",
    "AsyncConsumer": "client.aio",
    "AsyncProducer": "client.aio",
    "ClientError": "client.librdkafka.errors",
    "Consumer": "client.consumer.consumer",
    "ConsumerInterceptor": "client.interceptors",
    "ConsumerRecord": "client.records",
    "DefaultPartitioner": "client.partitioners",
    "ErrorCode": "base.errors",
    "KafkaError": "base.errors",
    "NewTopic": "client.admin.topic_types",
    "OffsetAndMetadata": "client.records",
    "OffsetAndTimestamp": "client.records",
    "PartitionInfo": "client.records",
    "Partitioner": "client.partitioners",
    "Producer": "client.producer.producer",
    "ProducerInterceptor": "client.interceptors",
    "ProducerRecord": "client.records",
    "RebalanceListener": "client.consumer.rebalance",
    "RecordDeserializationError": "client.consumer.deserialization",
    "RecordMetadata": "client.records",
    "RoundRobinPartitioner": "client.partitioners",
    "StickyPartitioner": "client.partitioners",
    "TopicPartition": "base.ids",
    "WakeupError": "client.consumer.consumer",
    "checked": "client.admin.client",
    "partition_for_key": "client.partitioners",
}

__all__ = [
    "AdminClient",
    "AsyncAdminClient",
    "AsyncConsumer",
    "AsyncProducer",
    "ClientError",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "DefaultPartitioner",
    "ErrorCode",
    "KafkaError",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionInfo",
    "Partitioner",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RebalanceListener",
    "RecordDeserializationError",
    "RecordMetadata",
    "RoundRobinPartitioner",
    "StickyPartitioner",
    "TopicPartition",
    "WakeupError",
    "checked",
    "partition_for_key",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"moldau.{_HOMES[name]}"), name)
