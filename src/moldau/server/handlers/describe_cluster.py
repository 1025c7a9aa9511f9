"""DescribeCluster (key 60), versions 0 to 2 (KIP-700): the brokers, or the controllers.

- 1: endpoint type (KIP-919)
- 2: fenced brokers (KIP-1073)

Requires ALTER on CLUSTER on controller listeners, nothing on broker listeners. The authorized operations are
0 without DESCRIBE on CLUSTER.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.enums import ResourceType
from moldau.security.acl.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from moldau.server.dispatch.context import NOT_REQUESTED, RequestContext
from moldau.server.handlers.metadata import controller_id
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import CONTROLLER
from moldau.server.startup.identity import Identity

BROKERS = 1
CONTROLLERS = 2


def handle(
    identity: Identity,
    metadata: MetadataPublisher,
    quorum: MetadataQuorum,
    context: RequestContext,
    request: DescribeClusterRequest,
) -> DescribeClusterResponse:
    on_controller = context.listener.role == CONTROLLER
    if on_controller:
        context.require(ALTER_CLUSTER)
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        )
    if (request.endpoint_type == CONTROLLERS) != on_controller:
        # Version 0 has no endpoint types and no error for them.
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if context.api_version else ErrorCode.INVALID_REQUEST,
            "The request was sent to an endpoint of type "
            f"{'CONTROLLER' if on_controller else 'BROKER'}, but we wanted an endpoint of type "
            f"{'BROKER' if on_controller else 'CONTROLLER'}",
        )
    if on_controller:
        nodes, controller = _controllers(metadata.image, context.listener.name), quorum.leader_id
    else:
        nodes, controller = (
            _brokers(metadata.image, context, request),
            controller_id(metadata.image, identity.node_id),
        )
    return DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=identity.cluster_id,
        controller_id=controller,
        brokers=nodes,
        cluster_authorized_operations=_operations(context, request),
    )


def _operations(context: RequestContext, request: DescribeClusterRequest) -> int:
    if not request.include_cluster_authorized_operations:
        return NOT_REQUESTED
    return context.authorized_operations(ResourceType.CLUSTER) if context.allows(DESCRIBE_CLUSTER) else 0


def _brokers(
    image: MetadataImage,
    context: RequestContext,
    request: DescribeClusterRequest,
) -> list[DescribeClusterBroker]:
    result = []
    for broker in image.cluster.brokers.values():
        endpoint = broker.endpoint(context.listener.name)
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


def _controllers(image: MetadataImage, listener_name: str) -> list[DescribeClusterBroker]:
    result: list[DescribeClusterBroker] = []
    for controller in image.cluster.controllers.values():
        result.extend(
            DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
            for endpoint in controller.endpoints
            if endpoint.name == listener_name
        )
    return result
