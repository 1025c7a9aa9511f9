"""Lags of consumer groups: per partition, and as a summary."""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import GroupDescription, MemberDescription
from moldau.client.admin.offsets import OffsetSpec
from moldau.rest.errors import not_found
from moldau.rest.request import Request, Response, json_response
from moldau.rest.v3.groups import found_group
from moldau.rest.v3.resources import checked_cluster, collection, related, resource, url


class _Lag(NamedTuple):
    where: TopicPartition
    member: MemberDescription | None
    current: int
    end: int

    @property
    def lag(self) -> int:
        return self.end - self.current


async def list_lags(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    lags = await _lags(request, group)
    lags.sort(key=lambda each: -each.lag)
    data = [_data(request, id, group.group_id, each) for each in lags]
    path = (id, "consumer-groups", group.group_id, "lags")
    return json_response(collection("KafkaConsumerLagList", url(request, *path), data))


async def get_lag(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    wanted = TopicPartition(request.params["topic_name"], request.path_number("partition_id"))
    for each in await _lags(request, group):
        if each.where == wanted:
            return json_response(_data(request, id, group.group_id, each))
    raise not_found("HTTP 404 Not Found")


async def get_summary(request: Request) -> Response:
    id = await checked_cluster(request)
    group = await found_group(request)
    lags = await _lags(request, group)
    if not lags:
        raise not_found("Consumer group offsets could not be found.")
    worst = max(lags, key=lambda each: each.lag)
    path = [id, "consumer-groups", group.group_id]
    member = worst.member.member_id if worst.member else ""
    return json_response(
        resource(
            request,
            "KafkaConsumerGroupLagSummary",
            [*path, "lag-summary"],
            [("kafka", id), ("consumer-group", group.group_id), ("lag-summary", None)],
            cluster_id=id,
            consumer_group_id=group.group_id,
            max_lag=worst.lag,
            total_lag=sum(each.lag for each in lags),
            max_lag_consumer_id=member,
            max_lag_consumer=related(request, *path, "consumers", member),
            max_lag_client_id=worst.member.client_id if worst.member else "",
            max_lag_instance_id=worst.member.instance_id if worst.member else None,
            max_lag_topic_name=worst.where.topic,
            max_lag_partition_id=worst.where.partition,
            max_lag_partition=related(
                request, id, "topics", worst.where.topic, "partitions", worst.where.partition
            ),
        )
    )


async def _lags(request: Request, group: GroupDescription) -> list[_Lag]:
    """Return the lag of each partition with a committed offset."""
    admin = request.clients.admin
    committed = await admin.list_group_offsets(group.group_id)
    found = {where: each for where, each in committed.items() if not isinstance(each, KafkaError)}
    if not found:
        raise not_found("Consumer group offsets could not be found.")
    ends = await admin.list_offsets(dict.fromkeys(found, OffsetSpec.LATEST))
    owners = {where: member for member in group.members for where in member.assignment}
    lags = []
    for where, offset in sorted(found.items(), key=lambda item: item[0]):
        end = ends.get(where)
        if end is not None and not isinstance(end, KafkaError):
            lags.append(_Lag(where, owners.get(where), offset.offset, end.offset))
    return lags


def _data(request: Request, id: str, group: str, each: _Lag) -> dict[str, Any]:
    topic, partition = each.where.topic, each.where.partition
    return resource(
        request,
        "KafkaConsumerLag",
        [id, "consumer-groups", group, "lags", topic, "partitions", partition],
        [("kafka", id), ("consumer-group", group), ("lag", topic), ("partition", partition)],
        cluster_id=id,
        consumer_group_id=group,
        topic_name=topic,
        partition_id=partition,
        consumer_id=each.member.member_id if each.member else "",
        instance_id=each.member.instance_id if each.member else None,
        client_id=each.member.client_id if each.member else "",
        current_offset=each.current,
        log_end_offset=each.end,
        lag=each.lag,
    )
