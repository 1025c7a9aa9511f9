"""Cases of requests about share groups and their persisted state."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from moldau.protocol.schema import Message
from tests.harness.security.authorization.case import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    NOT_REQUESTED,
    TOPIC_DENIED,
    Case,
    Outcome,
    World,
    authorization_codes,
    cluster,
    group,
    topic,
)

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def heartbeat(group_id: str, *topics: str, epoch: int = 0) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=MEMBER, member_epoch=epoch, subscribed_topic_names=list(topics)
    )


def _fetch(world: World, name: str) -> ShareFetchRequest:
    asked = FetchTopic(topic_id=world.topic_ids[name], partitions=[FetchPartition(partition_index=0)])
    return ShareFetchRequest(
        group_id=f"s-{world.user}",
        member_id=MEMBER,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[asked],
    )


def _described(response: Any) -> Outcome:
    return tuple((each.error_code, each.authorized_operations) for each in response.groups)


def _describe_offsets(*topics: str) -> DescribeShareGroupOffsetsRequest:
    asked = [DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in topics]
    return DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id="sharers", topics=asked or None)]
    )


def _offsets(response: Any) -> Outcome:
    (found,) = response.groups
    topics = ((each.topic_name, each.partitions[0].error_code) for each in found.topics)
    return (found.error_code, *sorted(topics))


def _alter(group_id: str) -> AlterShareGroupOffsetsRequest:
    partitions = [AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)]
    return AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=partitions)],
    )


def _delete(group_id: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name="orders")]
    )


def _state(module: Any, request: str, data: str, world: World) -> Message:
    made: Message = getattr(module, request)(
        group_id=f"s-{world.user}",
        topics=[
            getattr(module, data)(
                topic_id=world.topic_ids["orders"], partitions=[module.PartitionData(partition=0)]
            )
        ],
    )
    return made


def _state_case(name: str, module: Any, data: str) -> Case:
    return Case(
        name,
        0,
        lambda world: _state(module, f"{name}Request", data, world),
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"),),
        observe=authorization_codes,
    )


CASES: list[Case] = [
    Case(
        "ShareGroupHeartbeat",
        1,
        lambda world: heartbeat(f"s-{world.user}", "orders"),
        GROUP_DENIED,
        (group("READ", "s-{user}"), topic("DESCRIBE")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "ShareGroupDescribe",
        1,
        lambda world: ShareGroupDescribeRequest(group_ids=["sharers"], include_authorized_operations=True),
        ((30, NOT_REQUESTED),),
        (group("DESCRIBE", "sharers"), topic("DESCRIBE")),
        allowed=((0, 1 << 8),),
        lacking=(((30, NOT_REQUESTED),), ((29, NOT_REQUESTED),)),
        observe=_described,
        share_assignment=True,
    ),
    Case(
        "ShareFetch",
        1,
        lambda world: _fetch(world, "orders"),
        GROUP_DENIED,
        (group("READ", "s-{user}"), topic("READ")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
        also=(((group("READ", "s-{user}"), topic("DESCRIBE")), TOPIC_DENIED),),
        observe=authorization_codes,
    ),
    Case(
        "ShareAcknowledge",
        1,
        lambda world: ShareAcknowledgeRequest(
            group_id=f"s-{world.user}", member_id=MEMBER, share_session_epoch=1
        ),
        GROUP_DENIED,
        (group("READ", "s-{user}"),),
        allowed=(122,),
    ),
    Case(
        "DescribeShareGroupOffsets",
        0,
        lambda world: _describe_offsets("orders", "secrets"),
        (30,),
        (group("DESCRIBE", "sharers"), topic("DESCRIBE")),
        allowed=(0, ("orders", 0), ("secrets", 29)),
        lacking=((30,), (0, ("orders", 29), ("secrets", 29))),
        observe=_offsets,
        share_assignment=True,
    ),
    Case(
        "DescribeShareGroupOffsets of all topics",
        0,
        lambda world: _describe_offsets(),
        (30,),
        (group("DESCRIBE", "sharers"), topic("DESCRIBE")),
        allowed=(0, ("orders", 0)),
        lacking=((30,), (0,)),
        observe=_offsets,
        share_assignment=True,
    ),
    Case(
        "AlterShareGroupOffsets",
        0,
        lambda world: _alter("sharers"),
        GROUP_DENIED,
        (group("READ", "sharers"),),
        allowed=(68,),
    ),
    Case(
        "DeleteShareGroupOffsets",
        0,
        lambda world: _delete("sharers"),
        GROUP_DENIED,
        (group("DELETE", "sharers"),),
        allowed=(68,),
    ),
    _state_case("InitializeShareGroupState", initialize_share_group_state, "InitializeStateData"),
    _state_case("ReadShareGroupState", read_share_group_state, "ReadStateData"),
    _state_case("WriteShareGroupState", write_share_group_state, "WriteStateData"),
    _state_case("DeleteShareGroupState", delete_share_group_state, "DeleteStateData"),
    _state_case("ReadShareGroupStateSummary", read_share_group_state_summary, "ReadStateSummaryData"),
]
