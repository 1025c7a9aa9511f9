"""Cases of requests about groups and their offsets."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest
from tests.harness.security.authorization.case import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    NOT_REQUESTED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    Case,
    Outcome,
    World,
    authorization_codes,
    cluster,
    group,
    topic,
    transactional_id,
)
from tests.harness.security.authorization.topics import UNKNOWN_ID

GROUP, TRANSACTION, SHARE = 0, 1, 2


def join(group_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def _sync(group_id: str) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id, generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"
    )


def offset_commit(group_id: str, *topics: str) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(
                name=name, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
            )
            for name in topics
        ],
    )


def _commit_by_id(group_id: str, topic_id: bytes) -> OffsetCommitRequest:
    request = offset_commit(group_id, "")
    request.topics[0].topic_id = topic_id
    return request


def _offset_fetch(*topics: str) -> OffsetFetchRequest:
    asked = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="readers", topics=asked or None)])


def _offset_fetch_by_id(topic_id: bytes) -> OffsetFetchRequest:
    asked = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="readers", topics=asked)])


def _fetched(response: Any) -> Outcome:
    """Return the error of the group, and topic and error of each partition."""
    (found,) = response.groups
    topics = ((each.name, each.partitions[0].error_code) for each in found.topics)
    return (found.error_code, *sorted(topics))


def _delete_offsets(group_id: str) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    return OffsetDeleteRequest(
        group_id=group_id, topics=[OffsetDeleteRequestTopic(name="orders", partitions=partitions)]
    )


def _find(key_type: int, *keys: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))


def _described(response: Any) -> Outcome:
    return tuple((each.error_code, each.authorized_operations) for each in response.groups)


def _listed(response: Any) -> Outcome:
    return tuple(
        sorted(each.group_id for each in response.groups if each.group_id in ("readers", "consumers"))
    )


def _heartbeat(world: World, **more: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=f"c-{world.user}",
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topic_partitions=[],
        **more,
    )


_READ_AND_DESCRIBE = 1 << 3 | 1 << 8

CASES: list[Case] = [
    Case(
        "JoinGroup",
        9,
        lambda world: join(f"g-{world.user}"),
        GROUP_DENIED,
        (group("READ", "g-{user}"),),
        allowed=(79,),
        also=(((group("DESCRIBE", "g-{user}"),), GROUP_DENIED),),
    ),
    Case("SyncGroup", 5, lambda world: _sync("readers"), GROUP_DENIED, (group("READ"),), allowed=(25,)),
    Case("SyncGroup", 2, lambda world: _sync("readers"), GROUP_DENIED, (group("READ"),), allowed=(25,)),
    Case(
        "Heartbeat",
        4,
        lambda world: HeartbeatRequest(group_id="readers", generation_id=1, member_id="m"),
        GROUP_DENIED,
        (group("READ"),),
        allowed=(25,),
    ),
    Case(
        "LeaveGroup",
        5,
        lambda world: LeaveGroupRequest(group_id="readers", members=[MemberIdentity(member_id="m")]),
        GROUP_DENIED,
        (group("READ"),),
        allowed=(25,),
    ),
    Case(
        "LeaveGroup",
        0,
        lambda world: LeaveGroupRequest(group_id="readers", member_id="m"),
        GROUP_DENIED,
        (group("READ"),),
        allowed=(25,),
    ),
    Case(
        "DescribeGroups",
        5,
        lambda world: DescribeGroupsRequest(groups=["readers"], include_authorized_operations=True),
        ((30, NOT_REQUESTED),),
        (group("DESCRIBE"),),
        allowed=((0, 1 << 8),),
        also=(
            ((group("READ"),), ((0, _READ_AND_DESCRIBE),)),
            ((cluster("DESCRIBE"),), ((30, NOT_REQUESTED),)),
        ),
        observe=_described,
    ),
    Case(
        "ListGroups",
        4,
        lambda world: ListGroupsRequest(),
        (),
        (group("DESCRIBE"),),
        allowed=("readers",),
        also=(((cluster("DESCRIBE"),), ("consumers", "readers")),),
        observe=_listed,
    ),
    Case(
        "DeleteGroups",
        2,
        lambda world: DeleteGroupsRequest(groups_names=[f"doomed-{world.user}"]),
        GROUP_DENIED,
        (group("DELETE", "doomed-{user}"),),
        groups=("doomed-{user}",),
    ),
    Case(
        "OffsetCommit",
        9,
        lambda world: offset_commit(f"commits-{world.user}", "orders"),
        GROUP_DENIED,
        (group("READ", "commits-{user}"), topic("READ")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
        also=(((group("READ", "commits-{user}"), topic("DESCRIBE")), TOPIC_DENIED),),
    ),
    Case(
        "OffsetCommit of a missing topic",
        9,
        lambda world: offset_commit(f"commits-{world.user}", "missing"),
        GROUP_DENIED,
        (group("READ", "commits-{user}"), topic("READ", "missing")),
        allowed=(3,),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "OffsetCommit by id",
        10,
        lambda world: _commit_by_id(f"commits-{world.user}", world.topic_ids["orders"]),
        GROUP_DENIED,
        (group("READ", "commits-{user}"), topic("READ")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "OffsetCommit by unknown id",
        10,
        lambda world: _commit_by_id(f"commits-{world.user}", UNKNOWN_ID),
        GROUP_DENIED,
        (group("READ", "commits-{user}"),),
        allowed=(100,),
    ),
    Case(
        "OffsetFetch",
        9,
        lambda world: _offset_fetch("orders", "secrets"),
        (30,),
        (group("DESCRIBE"), topic("DESCRIBE")),
        allowed=(0, ("orders", 0), ("secrets", 29)),
        lacking=((30,), (0, ("orders", 29), ("secrets", 29))),
        observe=_fetched,
    ),
    Case(
        "OffsetFetch of all topics",
        9,
        lambda world: _offset_fetch(),
        (30,),
        (group("DESCRIBE"), topic("DESCRIBE")),
        allowed=(0, ("orders", 0)),
        lacking=((30,), (0,)),
        observe=_fetched,
    ),
    Case(
        "OffsetFetch by id",
        10,
        lambda world: _offset_fetch_by_id(world.topic_ids["orders"]),
        GROUP_DENIED,
        (group("DESCRIBE"), topic("DESCRIBE")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "OffsetFetch by unknown id",
        10,
        lambda world: _offset_fetch_by_id(UNKNOWN_ID),
        GROUP_DENIED,
        (group("DESCRIBE"),),
        allowed=(100,),
    ),
    Case(
        "OffsetFetch",
        1,
        lambda world: OffsetFetchRequest(
            group_id="readers", topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
        ),
        GROUP_DENIED,
        (group("DESCRIBE"), topic("DESCRIBE")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "OffsetDelete",
        0,
        lambda world: _delete_offsets(f"erased-{world.user}"),
        GROUP_DENIED,
        (group("DELETE", "erased-{user}"), topic("READ")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
        groups=("erased-{user}",),
    ),
    Case(
        "FindCoordinator of a group",
        4,
        lambda world: _find(GROUP, "readers"),
        GROUP_DENIED,
        (group("DESCRIBE"),),
    ),
    Case(
        "FindCoordinator of a group",
        1,
        lambda world: FindCoordinatorRequest(key="readers", key_type=GROUP),
        GROUP_DENIED,
        (group("DESCRIBE"),),
    ),
    Case(
        "FindCoordinator of a transaction",
        4,
        lambda world: _find(TRANSACTION, f"tx-{world.user}"),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("DESCRIBE"),),
        also=(((transactional_id("WRITE"),), ()),),
    ),
    Case(
        "FindCoordinator of a share partition",
        6,
        lambda world: _find(SHARE, "readers:AAAAAAAAAAAAAAAAAAAAAQ:0"),
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"),),
        observe=authorization_codes,
    ),
    Case(
        "ConsumerGroupHeartbeat",
        1,
        lambda world: _heartbeat(world, subscribed_topic_names=["orders"]),
        GROUP_DENIED,
        (group("READ", "c-{user}"), topic("DESCRIBE")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "ConsumerGroupHeartbeat with a hidden topic",
        1,
        lambda world: _heartbeat(world, subscribed_topic_names=["orders", "secrets"]),
        GROUP_DENIED,
        (group("READ", "c-{user}"), topic("DESCRIBE")),
        allowed=TOPIC_DENIED,
    ),
    Case(
        "ConsumerGroupHeartbeat with a regular expression",
        1,
        lambda world: _heartbeat(world, subscribed_topic_names=[], subscribed_topic_regex="orders|secrets"),
        GROUP_DENIED,
        (group("READ", "c-{user}"),),
    ),
    Case(
        "ConsumerGroupDescribe",
        1,
        lambda world: ConsumerGroupDescribeRequest(
            group_ids=["consumers"], include_authorized_operations=True
        ),
        ((30, NOT_REQUESTED),),
        (group("DESCRIBE", "consumers"), topic("DESCRIBE")),
        allowed=((0, 1 << 8),),
        lacking=(((30, NOT_REQUESTED),), ((29, NOT_REQUESTED),)),
        observe=_described,
    ),
]
