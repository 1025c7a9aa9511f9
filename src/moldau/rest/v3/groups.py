"""Consumer groups with their consumers and assignments."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.group_types import GroupDescription, MemberDescription
from moldau.rest.errors import not_found
from moldau.rest.request import Request, Response, json_response
from moldau.rest.v3.resources import checked_cluster, collection, related, resource, url

_STATES = {
    "PreparingRebalance": "PREPARING_REBALANCE",
    "CompletingRebalance": "COMPLETING_REBALANCE",
    "NotReady": "NOT_READY",
}


async def list_groups(request: Request) -> Response:
    id = await checked_cluster(request)
    listings = await request.clients.admin.list_groups(types=("classic", "consumer"))
    names = [each.group_id for each in listings if each.protocol_type in ("consumer", "")]
    found = await request.clients.admin.describe_groups(sorted(names))
    data = [_group(request, id, each) for each in found.values() if not isinstance(each, KafkaError)]
    return json_response(collection("KafkaConsumerGroupList", url(request, id, "consumer-groups"), data))


async def get_group(request: Request) -> Response:
    id = await checked_cluster(request)
    return json_response(_group(request, id, await found_group(request, "HTTP 404 Not Found")))


async def list_consumers(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    data = [_consumer(request, id, group.group_id, each) for each in group.members]
    path = (id, "consumer-groups", group.group_id, "consumers")
    return json_response(collection("KafkaConsumerList", url(request, *path), data))


async def get_consumer(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    return json_response(_consumer(request, id, group.group_id, _member(request, group)))


async def list_assignments(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    member = _member(request, group)
    data = [
        _assignment(request, id, group.group_id, member.member_id, each.topic, each.partition)
        for each in sorted(member.assignment)
    ]
    path = (id, "consumer-groups", group.group_id, "consumers", member.member_id, "assignments")
    return json_response(collection("KafkaConsumerAssignmentList", url(request, *path), data))


async def get_assignment(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    member = _member(request, group)
    wanted = (request.params["topic_name"], request.path_number("partition_id"))
    for each in member.assignment:
        if (each.topic, each.partition) == wanted:
            return json_response(_assignment(request, id, group.group_id, member.member_id, *wanted))
    raise not_found("HTTP 404 Not Found")


async def found_group(request: Request, missing: str = "") -> GroupDescription:
    """Return the group of the path; `ApiError` 404 if it does not exist."""
    name = request.params["consumer_group_id"]
    found = (await request.clients.admin.describe_groups([name]))[name]
    missing = missing or f"Consumer Group {name} could not be found."
    if isinstance(found, KafkaError):
        if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise not_found(missing)
        raise found
    if found.state == "Dead":
        raise not_found(missing)
    return found


def _member(request: Request, group: GroupDescription) -> MemberDescription:
    wanted = request.params["consumer_id"]
    for each in group.members:
        if each.member_id == wanted:
            return each
    raise not_found(f"Consumer {wanted} does not exist.")


def _group(request: Request, id: str, group: GroupDescription) -> dict[str, Any]:
    path = [id, "consumer-groups", group.group_id]
    is_consumer = group.type.lower() == "consumer"
    return resource(
        request,
        "KafkaConsumerGroup",
        path,
        [("kafka", id), ("consumer-group", group.group_id)],
        cluster_id=id,
        consumer_group_id=group.group_id,
        is_simple=not group.protocol_type and not group.members,
        partition_assignor=group.assignor,
        state=_STATES.get(group.state, group.state.upper()),
        type=group.type.upper(),
        is_mixed_consumer_group=is_consumer and any(each.classic for each in group.members),
        coordinator=related(request, id, "brokers", group.coordinator),
        consumers=related(request, *path, "consumers"),
        lag_summary=related(request, *path, "lag-summary"),
    )


def _consumer(request: Request, id: str, group: str, member: MemberDescription) -> dict[str, Any]:
    path = [id, "consumer-groups", group, "consumers", member.member_id]
    return resource(
        request,
        "KafkaConsumer",
        path,
        [("kafka", id), ("consumer-group", group), ("consumer", member.member_id)],
        cluster_id=id,
        consumer_group_id=group,
        consumer_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        assignments=related(request, *path, "assignments"),
    )


def _assignment(
    request: Request, id: str, group: str, member: str, topic: str, partition: int
) -> dict[str, Any]:
    base = [id, "consumer-groups", group]
    return resource(
        request,
        "KafkaConsumerAssignment",
        [*base, "consumers", member, "assignments", topic, "partitions", partition],
        [
            ("kafka", id),
            ("consumer-group", group),
            ("consumer", member),
            ("assignment", topic),
            ("partition", partition),
        ],
        cluster_id=id,
        consumer_group_id=group,
        consumer_id=member,
        topic_name=topic,
        partition_id=partition,
        partition=related(request, id, "topics", topic, "partitions", partition),
        lag=related(request, *base, "lags", topic, "partitions", partition),
    )
