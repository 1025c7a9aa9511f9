"""BrokerHeartbeat (API key 63): versions 0 to 2, flexible from 0."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, array, bool_, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, api_key=ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+"):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    current_metadata_offset: int = int64("0+")
    want_fence: bool = bool_("0+")
    want_shut_down: bool = bool_("0+")
    offline_log_dirs: list[Uuid] = array(uuid, "1+", tagged="1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "2+", default=None, nullable="2+", tagged="2+", tag=1)


class BrokerHeartbeatResponse(Message, api_key=ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    is_caught_up: bool = bool_("0+")
    is_fenced: bool = bool_("0+", default=True)
    should_shut_down: bool = bool_("0+")
