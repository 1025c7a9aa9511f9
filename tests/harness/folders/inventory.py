"""The inventory of a broker, from its own responses: plain data that can be compared and written as JSON.

Two brokers on the same folder, one after the other, must give the same inventory, except that a start
increases leader epochs. Records are the bytes as served, so not even a batch header may differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from moldau.base.ids import format_uuid
from moldau.base.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_config_resources import ListConfigResourcesRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.protocol.records import iter_batches, iter_records
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

Inventory = dict[str, Any]

_TOPIC, _BROKER, _CLIENT_METRICS, _GROUP = 2, 4, 16, 32
#: Sources of configs that were set on a resource: a topic, a broker, all brokers, client metrics, a group.
_DYNAMIC_SOURCES = (1, 2, 3, 7, 8)


def take_inventory(bootstrap: str, *, records: bool = True) -> Inventory:
    """Take the inventory of a single broker once all partitions have leaders."""
    with Wire(bootstrap, timeout=60) as wire:
        metadata = eventually(lambda: _complete_metadata(wire), what="every partition is led")
        return {
            "cluster_id": metadata.cluster_id,
            "features": _features(wire),
            "voters": _voters(wire),
            "topics": {
                topic.name: {
                    "id": format_uuid(topic.topic_id),
                    "internal": topic.is_internal,
                    "partitions": {
                        str(each.partition_index): _partition(wire, topic.name, each, records)
                        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
                    },
                }
                for topic in sorted(metadata.topics, key=lambda topic: topic.name)
            },
            "configs": _configs(wire, [topic.name for topic in metadata.topics]),
            "quotas": _quotas(wire),
        }


def announced_apis(bootstrap: str) -> set[int]:
    with Wire(bootstrap) as wire:
        answer = wire.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    return {api.api_key for api in answer.api_keys}


def stored_bytes(bootstrap: str, topic: str, partition: int = 0) -> bytes:
    """Return all batches of a partition as served."""
    with Wire(bootstrap, timeout=60) as wire:
        return b"".join(_fetch_all(wire, topic, partition))


def survey_records(batches: bytes) -> list[Any]:
    """Return offset, timestamp, key, value and headers of every record except control records."""
    found: list[Any] = []
    for position, header in iter_batches(batches):
        if not header.is_control:
            found += [
                (record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
                for record in iter_records(memoryview(batches)[position:], header)
            ]
    return found


def _complete_metadata(wire: Wire) -> Any:
    answer = wire.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
    led = all(each.leader_id >= 0 and not each.error_code for t in answer.topics for each in t.partitions)
    return answer if answer.brokers and led else None


def _features(wire: Wire) -> dict[str, int]:
    answer = wire.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    return {each.name: each.max_version_level for each in sorted(answer.finalized_features, key=_name)}


def _voters(wire: Wire) -> list[list[Any]]:
    asked = RequestTopicData(
        topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)]
    )
    answer = wire.call(DescribeQuorumRequest(topics=[asked]), 2)
    voters = answer.topics[0].partitions[0].current_voters
    return [[each.replica_id, format_uuid(each.replica_directory_id)] for each in voters]


def _partition(wire: Wire, topic: str, described: Any, records: bool) -> dict[str, Any]:
    index = described.partition_index
    start, end, newest = (
        eventually(
            lambda time=time: _offset(wire, topic, index, time), what=f"{topic}-{index} returns its offsets"
        )
        for time in (EARLIEST, LATEST, MAX_TIMESTAMP)
    )
    found = {
        "replicas": described.replica_nodes,
        "isr": described.isr_nodes,
        "leader_epoch": described.leader_epoch,
        "start": start["offset"],
        "end": end["offset"],
        "newest": [newest["offset"], newest["timestamp"]],
        "epoch_ends": _epoch_ends(wire, topic, index, described.leader_epoch),
        "producers": _producers(wire, topic, index),
    }
    if records:
        data = b"".join(_fetch_all(wire, topic, index))
        found["bytes"] = len(data)
        found["sha256"] = hashlib.sha256(data).hexdigest()
    return found


def _offset(wire: Wire, topic: str, partition: int, time: int) -> dict[str, int] | None:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=time)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    answer = wire.call(request, 7).topics[0].partitions[0]
    if answer.error_code:
        return None
    return {"offset": answer.offset, "timestamp": answer.timestamp}


def _epoch_ends(wire: Wire, topic: str, partition: int, last: int) -> list[list[int]]:
    """Return, for each epoch before the current one, the epoch found and its end offset."""
    ends: list[list[int]] = []
    for epoch in range(last):
        asked = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
        answer = wire.call(request, 4).topics[0].partitions[0]
        ends.append([answer.leader_epoch, answer.end_offset])
    return ends


def _producers(wire: Wire, topic: str, partition: int) -> list[list[int]]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
    answer = wire.call(request, 0).topics[0].partitions[0]
    return sorted(
        [
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.current_txn_start_offset,
        ]
        for each in answer.active_producers
    )


def _fetch_all(wire: Wire, topic: str, partition: int) -> Iterator[bytes]:
    """Fetch all batches from the log start offset to the log end offset."""
    start = eventually(lambda: _offset(wire, topic, partition, EARLIEST))["offset"]
    while True:
        asked = FetchPartition(partition=partition, fetch_offset=start, partition_max_bytes=4 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=4 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        answer = wire.call(request, 12).responses[0].partitions[0]
        assert answer.error_code == 0, f"{topic}-{partition} at {start}: error {answer.error_code}"
        data = bytes(answer.records or b"")
        whole = 0
        for position, header in iter_batches(data):
            whole = position + header.size_in_bytes
            start = header.next_offset
        if not whole:
            return
        yield data[:whole]


def _configs(wire: Wire, topics: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """Return the configs that were set on topics, the broker, all brokers, client metrics and groups."""
    listed = wire.call(ListConfigResourcesRequest(resource_types=[_CLIENT_METRICS, _GROUP]), 1)
    asked = [(_TOPIC, name) for name in sorted(topics)] + [(_BROKER, "1"), (_BROKER, "")]
    asked += sorted((each.resource_type, each.resource_name) for each in listed.config_resources)
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in asked
    ]
    answer = wire.call(DescribeConfigsRequest(resources=resources), 4)
    found = {}
    for result in answer.results:
        own = {
            each.name: each.value
            for each in sorted(result.configs, key=_name)
            if each.config_source in _DYNAMIC_SOURCES
            and not (each.config_source == 3 and result.resource_name)
        }
        found[f"{result.resource_type}/{result.resource_name}"] = own
    return found


def _quotas(wire: Wire) -> list[Any]:
    answer = wire.call(DescribeClientQuotasRequest(components=[], strict=False), 1)
    return sorted(
        [
            [
                sorted([part.entity_type, part.entity_name] for part in entry.entity),
                sorted([value.key, value.value] for value in entry.values),
            ]
            for entry in answer.entries or []
        ],
        key=repr,
    )


def _name(each: Any) -> str:
    return str(each.name)
