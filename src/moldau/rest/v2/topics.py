"""Topics, partitions and brokers of v2."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.configs import ConfigResource, ResourceType
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.topic_types import PartitionDescription, TopicDescription
from moldau.rest.errors import partition_not_found, topic_not_found
from moldau.rest.request import Request, Response
from moldau.rest.v2.media import v2_response


async def root(request: Request) -> Response:
    return v2_response({})


async def list_topics(request: Request) -> Response:
    listings = await request.clients.admin.list_topics()
    return v2_response(sorted(name for name, listing in listings.items() if not listing.internal))


async def get_topic(request: Request) -> Response:
    name = request.params["topic_name"]
    description = await _described(request, name)
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = checked(await request.clients.admin.describe_configs([resource]))[resource]
    return v2_response(
        {
            "name": name,
            "configs": {entry.name: entry.value for entry in entries},
            "partitions": [_partition(each) for each in description.partitions],
        }
    )


async def list_partitions(request: Request) -> Response:
    description = await _described(request, request.params["topic_name"])
    return v2_response([_partition(each) for each in description.partitions])


async def get_partition(request: Request) -> Response:
    return v2_response(_partition(await _found_partition(request)))


async def get_offsets(request: Request) -> Response:
    partition = await _found_partition(request)
    where = TopicPartition(request.params["topic_name"], partition.partition)
    admin = request.clients.admin
    earliest = checked(await admin.list_offsets({where: OffsetSpec.EARLIEST}))[where]
    latest = checked(await admin.list_offsets({where: OffsetSpec.LATEST}))[where]
    return v2_response({"beginning_offset": earliest.offset, "end_offset": latest.offset})


async def list_brokers(request: Request) -> Response:
    cluster = await request.clients.admin.describe_cluster()
    return v2_response({"brokers": sorted(node.id for node in cluster.nodes)})


async def _described(request: Request, name: str) -> TopicDescription:
    found = (await request.clients.admin.describe_topics([name]))[name]
    if isinstance(found, KafkaError):
        if found.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise topic_not_found()
        raise found
    return found


async def _found_partition(request: Request) -> PartitionDescription:
    number = request.path_number("partition_id")
    description = await _described(request, request.params["topic_name"])
    for each in description.partitions:
        if each.partition == number:
            return each
    raise partition_not_found()


def _partition(each: PartitionDescription) -> dict[str, Any]:
    return {
        "partition": each.partition,
        "leader": each.leader,
        "replicas": [
            {"broker": broker, "leader": broker == each.leader, "in_sync": broker in each.isr}
            for broker in each.replicas
        ],
    }
