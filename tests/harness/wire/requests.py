"""Short forms of the requests that many tests send."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.wire import Wire

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PRODUCE_VERSION = 12
FETCH_VERSION = 12
METADATA_VERSION = 12
CREATE_TOPICS_VERSION = 7


def produce_request(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=None if records is None else memoryview(records))
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def produce(bootstrap: str, topic: str, records: bytes | None, **options: Any) -> Any:
    """Produce to one partition and return its response."""
    version = options.pop("version", PRODUCE_VERSION)
    with Wire(bootstrap, timeout=60) as wire:
        response = wire.call(produce_request(topic, records, **options), version)
    return response.responses[0].partition_responses[0]


def fetch_request(
    topic: str, offset: int = 0, *, partition: int = 0, max_bytes: int = 50_000_000, max_wait_ms: int = 0
) -> FetchRequest:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )


def fetch(bootstrap: str, topic: str, offset: int = 0, **options: Any) -> Any:
    with Wire(bootstrap, timeout=60) as wire:
        response = wire.call(fetch_request(topic, offset, **options), FETCH_VERSION)
    return response.responses[0].partitions[0]


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Any:
    """Create a topic and return its response: `error_code` and `error_message`."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    with Wire(bootstrap, timeout=60) as wire:
        response = wire.call(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), CREATE_TOPICS_VERSION)
    return response.topics[0]


def create_and_wait(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic and return when its last partition accepts records."""
    created = create_topic(bootstrap, name, partitions, config)
    assert created.error_code == 0, created.error_message
    eventually(
        lambda: fetch(bootstrap, name, partition=partitions - 1).error_code == 0, what=f"{name} is served"
    )


def metadata_of(bootstrap: str, topic: str, *, create: bool = False) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=create)
    with Wire(bootstrap) as wire:
        return wire.call(request, METADATA_VERSION).topics[0]


def wait_until_known(servers: str, topic: str) -> None:
    """Wait until every broker knows the topic and its leaders.

    A broker may learn of a topic after another one has acknowledged its creation, and a
    client that requests metadata too early may not retry for minutes.
    """

    def known(server: str) -> bool:
        found = metadata_of(server, topic)
        return bool(found.error_code == 0 and all(each.leader_id >= 0 for each in found.partitions))

    eventually(lambda: all(map(known, servers.split(","))), what=f"all brokers know {topic}")


def stored_codecs(bootstrap: str, topic: str) -> set[str]:
    """Return the codecs of the stored batches of partition 0: a client may not use the configured one."""
    codecs: set[str] = set()
    offset = 0
    while records := fetch(bootstrap, topic, offset).records:
        data, position = bytes(records), 0
        while position + 61 <= len(data):
            base_offset, length = struct.unpack_from(">qi", data, position)
            attributes, last_offset_delta = struct.unpack_from(">hi", data, position + 21)
            codecs.add(CODECS[attributes & 7])
            offset = base_offset + last_offset_delta + 1
            position += 12 + length
    return codecs


def assert_serves(bootstrap: str, topic: str) -> None:
    """Check that the node serves a new connection: it stores a record and returns it."""
    with Wire(bootstrap) as wire:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        assert wire.call(request, 3).error_code == 0
    taken = produce(bootstrap, topic, batch())
    assert taken.error_code == 0, taken.error_message
    given = fetch(bootstrap, topic, taken.base_offset)
    assert given.error_code == 0
    assert given.records
