"""DescribeCluster (key 60), versions 0 to 2: the brokers, or on request the controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from moldau.server.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from moldau.server.dispatch.context import RequestContext
from moldau.server.roles import CONTROLLER

if TYPE_CHECKING:
    from moldau.server.node import Node

BROKERS = 1
CONTROLLERS = 2


def handle(node: Node, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    on_controller = node.role_of(context.listener_name) == CONTROLLER
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        )
    if (request.endpoint_type == CONTROLLERS) != on_controller:
        # Version 0 knows neither endpoint types nor an error for them.
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if context.api_version else ErrorCode.INVALID_REQUEST,
            "The request was sent to an endpoint of type "
            f"{'CONTROLLER' if on_controller else 'BROKER'}, but we wanted an endpoint of type "
            f"{'BROKER' if on_controller else 'CONTROLLER'}",
        )
    if on_controller:
        nodes, controller = _controllers(node, context.listener_name), node.metadata.leader_id
    else:
        nodes, controller = _brokers(node, context, request), node.any_broker_id()
    return DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=node.cluster_id,
        controller_id=controller,
        brokers=nodes,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _brokers(
    node: Node, context: RequestContext, request: DescribeClusterRequest
) -> list[DescribeClusterBroker]:
    result = []
    for broker in node.image.cluster.brokers.values():
        endpoint = broker.endpoint(context.listener_name)
        if endpoint is not None and (request.include_fenced_brokers or not broker.fenced):
            result.append(
                DescribeClusterBroker(
                    broker_id=broker.id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    return result


def _controllers(node: Node, listener_name: str) -> list[DescribeClusterBroker]:
    result: list[DescribeClusterBroker] = []
    for controller in node.image.cluster.controllers.values():
        result.extend(
            DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
            for endpoint in controller.endpoints
            if endpoint.name == listener_name
        )
    return result
