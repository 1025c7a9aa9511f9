"""The names under which the timers of a consumer group's members run."""

from __future__ import annotations


def session_key(group_id: str, member_id: str) -> str:
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_key(group_id: str, member_id: str) -> str:
    return f"rebalance-timeout-{group_id}-{member_id}"


def join_key(group_id: str, member_id: str) -> str:
    return f"consumer-join-{group_id}-{member_id}"


def sync_key(group_id: str, member_id: str) -> str:
    return f"consumer-sync-{group_id}-{member_id}"


def member_timer_keys(group_id: str, member_id: str) -> tuple[str, ...]:
    """All timers that may run for a member."""
    return (
        session_key(group_id, member_id),
        rebalance_key(group_id, member_id),
        join_key(group_id, member_id),
        sync_key(group_id, member_id),
    )
