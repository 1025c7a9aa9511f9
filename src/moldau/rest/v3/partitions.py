"""Partitions, their offsets, replicas and reassignments."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.topic_types import PartitionDescription, Reassignment
from moldau.rest.errors import not_found
from moldau.rest.request import Request, Response, json_response
from moldau.rest.v3.clusters import found_broker
from moldau.rest.v3.resources import checked_cluster, collection, described_topic, related, resource, url


async def list_partitions(request: Request) -> Response:
    id = await checked_cluster(request)
    topic = await described_topic(request)
    data = [_partition(request, id, topic.name, each) for each in topic.partitions]
    return json_response(
        collection("KafkaPartitionList", url(request, id, "topics", topic.name, "partitions"), data)
    )


async def get_partition(request: Request) -> Response:
    id = await checked_cluster(request)
    return json_response(_partition(request, id, request.params["topic_name"], await _found(request)))


async def get_offsets(request: Request) -> Response:
    id = await checked_cluster(request)
    name, found = request.params["topic_name"], await _found(request)
    where = TopicPartition(name, found.partition)
    admin = request.clients.admin
    offsets = {}
    for each, spec in (("earliest_offset", OffsetSpec.EARLIEST), ("latest_offset", OffsetSpec.LATEST)):
        offsets[each] = checked(await admin.list_offsets({where: spec}))[where].offset
    return json_response(
        resource(
            request,
            "KafkaPartitionWithOffsets",
            [id, "topics", name, "partitions", found.partition, "offset"],
            [("kafka", id), ("topic", name), ("partition", found.partition)],
            cluster_id=id,
            topic_name=name,
            partition_id=found.partition,
            **offsets,
        )
    )


async def list_replicas(request: Request) -> Response:
    id = await checked_cluster(request)
    name, found = request.params["topic_name"], await _found(request)
    data = [_replica(request, id, name, found, broker) for broker in found.replicas]
    path = (id, "topics", name, "partitions", found.partition, "replicas")
    return json_response(collection("KafkaReplicaList", url(request, *path), data))


async def get_replica(request: Request) -> Response:
    id = await checked_cluster(request)
    found, broker = await _found(request), request.path_number("broker_id")
    if broker not in found.replicas:
        raise not_found("HTTP 404 Not Found")
    return json_response(_replica(request, id, request.params["topic_name"], found, broker))


async def list_replicas_of_broker(request: Request) -> Response:
    id = await checked_cluster(request)
    broker = (await found_broker(request)).id
    admin = request.clients.admin
    topics = await admin.describe_topics(sorted(await admin.list_topics()))
    data = [
        _replica(request, id, topic.name, partition, broker)
        for topic in topics.values()
        if not isinstance(topic, KafkaError)
        for partition in topic.partitions
        if broker in partition.replicas
    ]
    path = (id, "brokers", broker, "partition-replicas")
    return json_response(collection("KafkaReplicaList", url(request, *path), data))


async def list_reassignments(request: Request) -> Response:
    """List the reassignments of all topics, or of the topic of the path."""
    id = await checked_cluster(request)
    topic = request.params.get("topic_name")
    found = await request.clients.admin.list_partition_reassignments()
    data = [
        _reassignment(request, id, where, each)
        for where, each in sorted(found.items())
        if topic in (None, where.topic)
    ]
    path = (id, "topics", topic or "-", "partitions", "-", "reassignment")
    return json_response(collection("KafkaReassignmentList", url(request, *path), data))


async def get_reassignment(request: Request) -> Response:
    id = await checked_cluster(request)
    where = TopicPartition(request.params["topic_name"], request.path_number("partition_id"))
    found = await request.clients.admin.list_partition_reassignments()
    if where not in found:
        raise not_found("HTTP 404 Not Found")
    return json_response(_reassignment(request, id, where, found[where]))


async def _found(request: Request) -> PartitionDescription:
    number = request.path_number("partition_id")
    for each in (await described_topic(request)).partitions:
        if each.partition == number:
            return each
    raise not_found("HTTP 404 Not Found")


def _partition(request: Request, id: str, topic: str, each: PartitionDescription) -> dict[str, Any]:
    path = [id, "topics", topic, "partitions", each.partition]
    leader = related(request, *path, "replicas", each.leader) if each.leader >= 0 else None
    return resource(
        request,
        "KafkaPartition",
        path,
        [("kafka", id), ("topic", topic), ("partition", each.partition)],
        cluster_id=id,
        topic_name=topic,
        partition_id=each.partition,
        leader=leader,
        replicas=related(request, *path, "replicas"),
        reassignment=related(request, *path, "reassignment"),
    )


def _replica(
    request: Request, id: str, topic: str, each: PartitionDescription, broker: int
) -> dict[str, Any]:
    return resource(
        request,
        "KafkaReplica",
        [id, "topics", topic, "partitions", each.partition, "replicas", broker],
        [("kafka", id), ("topic", topic), ("partition", each.partition), ("replica", broker)],
        cluster_id=id,
        topic_name=topic,
        partition_id=each.partition,
        broker_id=broker,
        is_leader=broker == each.leader,
        is_in_sync=broker in each.isr,
        broker=related(request, id, "brokers", broker),
    )


def _reassignment(request: Request, id: str, where: TopicPartition, each: Reassignment) -> dict[str, Any]:
    path = [id, "topics", where.topic, "partitions", where.partition]
    return resource(
        request,
        "KafkaReassignment",
        [*path, "reassignment"],
        [("kafka", id), ("topic", where.topic), ("partition", where.partition), ("reassignment", None)],
        cluster_id=id,
        topic_name=where.topic,
        partition_id=where.partition,
        adding_replicas=each.adding,
        removing_replicas=each.removing,
        replicas=related(request, *path, "replicas"),
    )
