"""Attribute names of OpenTelemetry's semantic conventions for messaging (1.43), and ours for pipelines."""

from __future__ import annotations

from typing import Final

SYSTEM: Final = "messaging.system"
KAFKA: Final = "kafka"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
SEND: Final = "send"
RECEIVE: Final = "receive"
PROCESS: Final = "process"

TOPIC: Final = "messaging.destination.name"
#: A string, because other systems have partitions with names.
PARTITION: Final = "messaging.destination.partition.id"
OFFSET: Final = "messaging.kafka.offset"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
RECORDS: Final = "messaging.batch.message_count"
CLIENT_ID: Final = "messaging.client.id"
GROUP: Final = "messaging.consumer.group.name"
CLUSTER_ID: Final = "messaging.kafka.cluster.id"
ERROR: Final = "error.type"

QUERY: Final = "moldau.query.name"
BATCH: Final = "moldau.query.batch"
#: Ranges of offsets such as `orders-0:17-42`; the end is exclusive.
OFFSETS: Final = "moldau.query.offsets"
