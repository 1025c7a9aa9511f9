"""Topics: list, get, create, delete, change the number of partitions."""

from __future__ import annotations

import re
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.admin.client import checked
from moldau.client.admin.topic_types import NewTopic, TopicDescription
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from moldau.rest.errors import bad_request, invalid_payload
from moldau.rest.request import NO_CONTENT, Request, Response, json_response
from moldau.rest.v3.resources import (
    checked_cluster,
    collection,
    config_text,
    described_topic,
    json_object,
    related,
    resource,
    url,
)
from moldau.rest.values import INT16, INT32, is_number, quoted_number
from moldau.security.acl.enums import AclOperation

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NO_COUNT: Final = "Request body is empty. Partitions_count is required."


async def list_topics(request: Request) -> Response:
    id = await checked_cluster(request)
    listings = await request.clients.admin.list_topics()
    names = sorted(name for name, listing in listings.items() if not listing.internal)
    found = await request.clients.admin.describe_topics(names)
    allowed = await _operations(request, names)
    data = [
        _topic(request, id, each, allowed.get(each.name, []))
        for each in found.values()
        if not isinstance(each, KafkaError)
    ]
    return json_response(collection("KafkaTopicList", url(request, id, "topics"), data))


async def get_topic(request: Request) -> Response:
    id = await checked_cluster(request)
    topic = await described_topic(request)
    allowed = await _operations(request, [topic.name])
    return json_response(_topic(request, id, topic, allowed.get(topic.name, [])))


async def _operations(request: Request, names: list[str]) -> dict[str, list[str]]:
    """Return what the caller may do with topics, if the request asks for it."""
    if not names or not request.flag("include_authorized_operations"):
        return {}
    wanted = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    cluster = request.clients.admin.cluster
    answer: MetadataResponse = await cluster.retry(lambda: cluster.ask_any(wanted))
    return {
        topic.name or "": [
            operation.name for operation in AclOperation if topic.topic_authorized_operations >> operation & 1
        ]
        for topic in answer.topics
        if topic.topic_authorized_operations >= 0
    }


async def create_topic(request: Request) -> Response:
    body = await json_object(request)
    topic, validate_only = _new_topic(body), body.get("validate_only") is True
    id = await checked_cluster(request)
    result = await request.clients.admin.create_topics([topic], validate_only=validate_only)
    checked(result)
    request.clients.forget_topic(topic.name)
    partitions = len(topic.assignment) or topic.partitions
    replication = len(next(iter(topic.assignment.values()))) if topic.assignment else topic.replication_factor
    if not validate_only and (partitions < 0 or replication < 0):
        described = (await request.clients.admin.describe_topics([topic.name]))[topic.name]
        if not isinstance(described, KafkaError):
            partitions, replication = len(described.partitions), len(described.partitions[0].replicas)
    created = _data(request, id, topic.name, False, max(replication, 0), max(partitions, 0))
    location = created["metadata"]["self"].encode()
    return json_response(created, 200 if validate_only else 201, ((b"location", location),))


async def delete_topic(request: Request) -> Response:
    await checked_cluster(request)
    name = request.params["topic_name"]
    checked(await request.clients.admin.delete_topics([name]))
    request.clients.forget_topic(name)
    return NO_CONTENT


async def update_partitions(request: Request) -> Response:
    body = await json_object(request, _NO_COUNT)
    count = body.get("partitions_count")
    if not is_number(count, INT32):
        raise bad_request("partitions_count must be a number.")
    id = await checked_cluster(request)
    name = request.params["topic_name"]
    checked(await request.clients.admin.create_partitions({name: count}))
    return json_response(_topic(request, id, await described_topic(request), []))


def _new_topic(body: dict[str, Any]) -> NewTopic:
    name = body.get("topic_name")
    if not isinstance(name, str):
        raise bad_request("topic_name is required.")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise invalid_payload("Invalid topic name.")
    try:
        assignment = {
            quoted_number(partition, INT32): [quoted_number(broker, INT32) for broker in brokers]
            for partition, brokers in (body.get("replicas_assignments") or {}).items()
        }
        configs = dict(_config(each) for each in body.get("configs") or [] if each["value"] is not None)
        partitions = _count(body.get("partitions_count"), INT32)
        replication = _count(body.get("replication_factor"), INT16)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise bad_request("The description of the topic is not valid.") from None
    if assignment:
        return NewTopic(name, assignment=assignment, configs=configs)
    return NewTopic(name, partitions, replication, configs=configs)


def _config(entry: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the value of a config; one without a value keeps its default."""
    name = entry["name"]
    if not isinstance(name, str):
        raise TypeError
    return name, config_text(entry["value"])


def _count(value: Any, most: int) -> int:
    """Return a count; -1 stands for the broker's default."""
    return -1 if value is None or value == -1 else quoted_number(value, most)


def _topic(request: Request, id: str, topic: TopicDescription, allowed: list[str]) -> dict[str, Any]:
    replication = len(topic.partitions[0].replicas) if topic.partitions else 0
    shown = _data(request, id, topic.name, topic.internal, replication, len(topic.partitions))
    return {**shown, "authorized_operations": allowed}


def _data(
    request: Request, id: str, name: str, internal: bool, replication: int, partitions: int
) -> dict[str, Any]:
    path = [id, "topics", name]
    return resource(
        request,
        "KafkaTopic",
        path,
        [("kafka", id), ("topic", name)],
        cluster_id=id,
        topic_name=name,
        is_internal=internal,
        replication_factor=replication,
        partitions_count=partitions,
        partitions=related(request, *path, "partitions"),
        configs=related(request, *path, "configs"),
        partition_reassignments=related(request, *path, "partitions", "-", "reassignment"),
        authorized_operations=[],
    )
