"""Cases of requests about streams groups."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.harness.security.authorization.case import (
    GROUP_DENIED,
    NOT_REQUESTED,
    TOPIC_DENIED,
    Case,
    Outcome,
    group,
    topic,
)


def heartbeat(group_id: str, source: str, *changelogs: str) -> StreamsGroupHeartbeatRequest:
    """Join a group whose topology reads one topic and has these changelog topics."""
    subtopology = Subtopology(
        subtopology_id="0",
        source_topics=[source],
        state_changelog_topics=[TopicInfo(name=name) for name in changelogs],
    )
    return StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id="AAAAAAAAAAAAAAAAAAAAAw",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=Topology(epoch=1, subtopologies=[subtopology]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        client_tags=[],
    )


def _described(response: Any) -> Outcome:
    return tuple((each.error_code, each.authorized_operations) for each in response.groups)


def _creation(response: Any) -> Outcome:
    """Whether missing internal topics may be created."""
    details = [each.status_detail for each in response.status or ()]
    return (response.error_code, any("Unauthorized to CREATE" in detail for detail in details))


_CHANGELOG = "log-{user}"

CASES: list[Case] = [
    Case(
        "StreamsGroupHeartbeat",
        0,
        lambda world: heartbeat(f"st-{world.user}", "orders"),
        GROUP_DENIED,
        (group("READ", "st-{user}"), topic("DESCRIBE")),
        lacking=(GROUP_DENIED, TOPIC_DENIED),
    ),
    Case(
        "StreamsGroupHeartbeat with an internal topic",
        0,
        lambda world: heartbeat(f"sc-{world.user}", "orders", f"log-{world.user}"),
        (30, False),
        (
            group("READ", "sc-{user}"),
            topic("DESCRIBE"),
            topic("DESCRIBE", _CHANGELOG),
            topic("CREATE", _CHANGELOG),
        ),
        allowed=(0, False),
        lacking=((30, False), (29, False), (29, False), (0, True)),
        observe=_creation,
    ),
    Case(
        "StreamsGroupDescribe",
        0,
        lambda world: StreamsGroupDescribeRequest(
            group_ids=["streamers"], include_authorized_operations=True
        ),
        ((30, NOT_REQUESTED),),
        (group("DESCRIBE", "streamers"), topic("DESCRIBE")),
        allowed=((0, 1 << 8),),
        lacking=(((30, NOT_REQUESTED),), ((29, NOT_REQUESTED),)),
        observe=_described,
    ),
]
