"""Heartbeat (API key 12): versions 0 to 4, flexible from 4."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, int16, int32, string


class HeartbeatRequest(Message, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", default=None, nullable="3+")


class HeartbeatResponse(Message, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
