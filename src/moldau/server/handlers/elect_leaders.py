"""ElectLeaders (key 43), versions 0 to 2 (KIP-183): elects leaders of partitions; decided by the controller.

- 1: election type, preferred or unclean (KIP-460)
- 2: flexible

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.partitions.elections import elect_leaders
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext

_ERROR_CODE_SINCE = 1


async def handle(
    controller: ControllerChannel, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    try:
        return await controller.decide(context, request, elect_leaders, requires(ALTER_CLUSTER))
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            raise
        return _failed(request, context.api_version, error)


def _failed(request: ElectLeadersRequest, version: int, error: KafkaError) -> ElectLeadersResponse:
    """Repeat an error about the whole request in every partition, because version 0 has no other place."""
    return ElectLeadersResponse(
        error_code=error.code if version >= _ERROR_CODE_SINCE else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
