"""The keys of group timers.

Members choose their ids. The length of the group id in a key keeps apart ids that look alike when joined:
member `b-c` of group `a`, and member `c` of group `a-b`.
"""

from __future__ import annotations

# Classic groups.


def heartbeat_key(group_id: str, member_id: str) -> str:
    return f"heartbeat-{len(group_id)}-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    return f"sync-{group_id}"


# Members of consumer, share and streams groups.


def session_timeout_key(group_id: str, member_id: str) -> str:
    return f"session-timeout-{len(group_id)}-{group_id}-{member_id}"


def rebalance_timeout_key(group_id: str, member_id: str) -> str:
    return f"rebalance-timeout-{len(group_id)}-{group_id}-{member_id}"


def consumer_join_key(group_id: str, member_id: str) -> str:
    return f"consumer-join-{len(group_id)}-{group_id}-{member_id}"


def consumer_sync_key(group_id: str, member_id: str) -> str:
    return f"consumer-sync-{len(group_id)}-{group_id}-{member_id}"


def consumer_member_keys(group_id: str, member_id: str) -> tuple[str, ...]:
    """Return the keys of all timers of a consumer group's member."""
    return (
        session_timeout_key(group_id, member_id),
        rebalance_timeout_key(group_id, member_id),
        consumer_join_key(group_id, member_id),
        consumer_sync_key(group_id, member_id),
    )


# Streams groups.


def initial_rebalance_key(group_id: str) -> str:
    return f"initial-rebalance-{group_id}"
