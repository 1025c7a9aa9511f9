"""Cases of requests on controller listeners: brokers and controllers need CLUSTER_ACTION, operators ALTER.

The requests of users who have the permission fail for another reason, so that no case changes the cluster.
"""

from __future__ import annotations

from typing import Any

from moldau.protocol.apis import APIS
from moldau.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.alter_partition import AlterPartitionRequest, RequestTopicData
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest
from moldau.protocol.messages.controller_registration import ControllerRegistrationRequest
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.envelope import EnvelopeRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message, decode, encode_bytes
from moldau.security.principal import KafkaPrincipal, encode_principal
from tests.harness.security.authorization import administration, topics
from tests.harness.security.authorization.case import (
    CLUSTER_DENIED,
    Case,
    Outcome,
    World,
    cluster,
    topic,
)

_ANOTHER_CLUSTER = "another"
_NO_BROKER = 77
_CONTROLLERS = 2
_INCONSISTENT_CLUSTER_ID: Outcome = (104,)
_STALE_BROKER_EPOCH: Outcome = (77,)


def _fetch(version: int) -> FetchRequest:
    name = "__cluster_metadata"
    asked = FetchTopic(topic=name if version < 13 else "", partitions=[FetchPartition(partition=0)])
    return FetchRequest(cluster_id=_ANOTHER_CLUSTER, max_wait_ms=0, max_bytes=1 << 20, topics=[asked])


def _envelope(principal: str, request: Message, version: int) -> EnvelopeRequest:
    header = encode_request_header(RequestHeader(request.API_KEY, version, 1, "raw"))
    return EnvelopeRequest(
        request_data=header + encode_bytes(request, version),
        request_principal=encode_principal(KafkaPrincipal("User", principal)),
        client_host_address=bytes([127, 0, 0, 1]),
    )


def _forwarded(response: Any) -> Outcome:
    """Return the error of the envelope, and of the response inside."""
    if response.error_code:
        return (response.error_code,)
    api = APIS[UnregisterBrokerRequest.API_KEY]
    _, body = decode_response_header(api.key, 0, response.response_data)
    inside: Any = decode(api.response, response.response_data, 0, body)
    return (0, inside.error_code)


def _node_case(name: str, version: int, request: Message, allowed: Outcome) -> Case:
    return Case(
        name,
        version,
        lambda world: request,
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"),),
        allowed=allowed,
        also=(((cluster("ALTER"), cluster("DESCRIBE"), topic("ALL", "*")), CLUSTER_DENIED),),
        controller=True,
    )


def _unregister(principal: str) -> EnvelopeRequest:
    return _envelope(principal, UnregisterBrokerRequest(broker_id=_NO_BROKER), 0)


def _envelope_of_user(world: World) -> EnvelopeRequest:
    return _unregister(world.user)


CASES: list[Case] = [
    Case("ApiVersions", 0, lambda world: ApiVersionsRequest(), (), controller=True),
    _node_case("Fetch", 17, _fetch(17), _INCONSISTENT_CLUSTER_ID),
    _node_case("Fetch", 12, _fetch(12), _INCONSISTENT_CLUSTER_ID),
    _node_case("Vote", 2, VoteRequest(cluster_id=_ANOTHER_CLUSTER), _INCONSISTENT_CLUSTER_ID),
    _node_case(
        "BeginQuorumEpoch", 1, BeginQuorumEpochRequest(cluster_id=_ANOTHER_CLUSTER), _INCONSISTENT_CLUSTER_ID
    ),
    _node_case(
        "EndQuorumEpoch", 1, EndQuorumEpochRequest(cluster_id=_ANOTHER_CLUSTER), _INCONSISTENT_CLUSTER_ID
    ),
    _node_case(
        "FetchSnapshot", 1, FetchSnapshotRequest(cluster_id=_ANOTHER_CLUSTER), _INCONSISTENT_CLUSTER_ID
    ),
    _node_case(
        "UpdateRaftVoter", 0, UpdateRaftVoterRequest(cluster_id=_ANOTHER_CLUSTER), _INCONSISTENT_CLUSTER_ID
    ),
    _node_case(
        "AlterPartition",
        3,
        AlterPartitionRequest(
            broker_id=_NO_BROKER, broker_epoch=1, topics=[RequestTopicData(topic_id=topics.UNKNOWN_ID)]
        ),
        _STALE_BROKER_EPOCH,
    ),
    _node_case(
        "BrokerRegistration",
        4,
        BrokerRegistrationRequest(broker_id=_NO_BROKER, cluster_id=_ANOTHER_CLUSTER),
        _INCONSISTENT_CLUSTER_ID,
    ),
    _node_case(
        "BrokerHeartbeat",
        1,
        BrokerHeartbeatRequest(broker_id=_NO_BROKER, broker_epoch=1),
        _STALE_BROKER_EPOCH,
    ),
    _node_case(
        "AllocateProducerIds",
        0,
        AllocateProducerIdsRequest(broker_id=_NO_BROKER, broker_epoch=1),
        _STALE_BROKER_EPOCH,
    ),
    _node_case(
        "AssignReplicasToDirs",
        0,
        AssignReplicasToDirsRequest(broker_id=_NO_BROKER, broker_epoch=1),
        _STALE_BROKER_EPOCH,
    ),
    Case(
        "ControllerRegistration",
        0,
        lambda world: ControllerRegistrationRequest(controller_id=_NO_BROKER),
        CLUSTER_DENIED,
        also=(((cluster("ALTER"), cluster("DESCRIBE")), CLUSTER_DENIED),),
        controller=True,
    ),
    Case(
        "Envelope of an impostor",
        0,
        lambda world: _unregister("admin"),
        CLUSTER_DENIED,
        also=(((cluster("ALTER"), cluster("DESCRIBE")), CLUSTER_DENIED),),
        observe=_forwarded,
        controller=True,
    ),
    Case(
        "Envelope",
        0,
        _envelope_of_user,
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"), cluster("ALTER")),
        allowed=(0, 102),
        lacking=(CLUSTER_DENIED, (0, 31)),
        observe=_forwarded,
        controller=True,
    ),
    Case(
        "DescribeCluster",
        1,
        lambda world: DescribeClusterRequest(endpoint_type=_CONTROLLERS),
        CLUSTER_DENIED,
        (cluster("ALTER"),),
        also=(((cluster("DESCRIBE"),), CLUSTER_DENIED),),
        controller=True,
    ),
    Case(
        "IncrementalAlterConfigs of loggers",
        1,
        administration.alter_loggers,
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"),),
        also=(((cluster("ALTER_CONFIGS"),), CLUSTER_DENIED),),
        controller=True,
    ),
    *(
        each.on_controller()
        for each in (*topics.CASES, *administration.CASES)
        if each.name
        in {
            "CreateTopics",
            "DeleteTopics of a missing topic",
            "CreatePartitions",
            "AlterConfigs of a topic",
            "IncrementalAlterConfigs of a topic",
            "DescribeConfigs of a broker",
            "AlterClientQuotas",
            "ElectLeaders",
            "AlterPartitionReassignments",
            "ListPartitionReassignments",
            "UpdateFeatures",
            "UnregisterBroker",
            "DescribeQuorum",
            "AddRaftVoter",
            "RemoveRaftVoter",
            "DescribeAcls",
            "CreateAcls",
            "DeleteAcls",
            "AlterUserScramCredentials",
            "SaslHandshake",
        }
    ),
]
