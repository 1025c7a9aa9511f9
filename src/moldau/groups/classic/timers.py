"""The names under which a classic group's timers run; see `consumer_timer_keys` for the length in front."""

from __future__ import annotations


def heartbeat_key(group_id: str, member_id: str) -> str:
    return f"heartbeat-{len(group_id)}-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    return f"sync-{group_id}"
