"""Clusters and brokers."""

from __future__ import annotations

from typing import Any

from moldau.client.admin.nodes import NodeDescription
from moldau.rest.errors import not_found
from moldau.rest.request import Request, Response, json_response
from moldau.rest.v3.resources import checked_cluster, collection, related, resource, url


async def list_clusters(request: Request) -> Response:
    cluster = await request.clients.admin.describe_cluster()
    data = [_cluster(request, cluster.cluster_id, cluster.controller_id)]
    return json_response(collection("KafkaClusterList", url(request), data))


async def get_cluster(request: Request) -> Response:
    id = await checked_cluster(request)
    cluster = await request.clients.admin.describe_cluster()
    return json_response(_cluster(request, id, cluster.controller_id))


async def list_brokers(request: Request) -> Response:
    id = await checked_cluster(request)
    nodes = sorted((await request.clients.admin.describe_cluster()).nodes, key=lambda node: node.id)
    data = [_broker(request, id, node) for node in nodes]
    return json_response(collection("KafkaBrokerList", url(request, id, "brokers"), data))


async def get_broker(request: Request) -> Response:
    id = await checked_cluster(request)
    return json_response(_broker(request, id, await found_broker(request)))


async def found_broker(request: Request) -> NodeDescription:
    """Return the broker of the path; `ApiError` 404 if it does not exist."""
    number = request.path_number("broker_id")
    for node in (await request.clients.admin.describe_cluster()).nodes:
        if node.id == number:
            return node
    raise not_found("HTTP 404 Not Found")


def _cluster(request: Request, id: str, controller: int) -> dict[str, Any]:
    return resource(
        request,
        "KafkaCluster",
        [id],
        [("kafka", id)],
        cluster_id=id,
        controller=related(request, id, "brokers", controller) if controller >= 0 else None,
        acls=related(request, id, "acls"),
        brokers=related(request, id, "brokers"),
        broker_configs=related(request, id, "broker-configs"),
        consumer_groups=related(request, id, "consumer-groups"),
        topics=related(request, id, "topics"),
        partition_reassignments=related(request, id, "topics", "-", "partitions", "-", "reassignment"),
    )


def _broker(request: Request, id: str, node: NodeDescription) -> dict[str, Any]:
    return resource(
        request,
        "KafkaBroker",
        [id, "brokers", node.id],
        [("kafka", id), ("broker", node.id)],
        cluster_id=id,
        broker_id=node.id,
        host=node.host,
        port=node.port,
        rack=node.rack,
        configs=related(request, id, "brokers", node.id, "configs"),
        partition_replicas=related(request, id, "brokers", node.id, "partition-replicas"),
    )
