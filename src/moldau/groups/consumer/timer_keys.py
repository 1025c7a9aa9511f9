"""The names under which the timers of a consumer group's members run.

Members choose their ids themselves. The length of the group's id in front keeps apart names that look alike
when put together: member `b-c` of group `a`, and member `c` of group `a-b`.
"""

from __future__ import annotations


def session_key(group_id: str, member_id: str) -> str:
    return f"session-timeout-{len(group_id)}-{group_id}-{member_id}"


def rebalance_key(group_id: str, member_id: str) -> str:
    return f"rebalance-timeout-{len(group_id)}-{group_id}-{member_id}"


def join_key(group_id: str, member_id: str) -> str:
    return f"consumer-join-{len(group_id)}-{group_id}-{member_id}"


def sync_key(group_id: str, member_id: str) -> str:
    return f"consumer-sync-{len(group_id)}-{group_id}-{member_id}"


def member_timer_keys(group_id: str, member_id: str) -> tuple[str, ...]:
    """All timers that may run for a member."""
    return (
        session_key(group_id, member_id),
        rebalance_key(group_id, member_id),
        join_key(group_id, member_id),
        sync_key(group_id, member_id),
    )
