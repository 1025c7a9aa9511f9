"""EndTxn (API key 26): versions 0 to 5, flexible from 3."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, bool_, int16, int32, int64, string


class EndTxnRequest(Message, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = bool_("0+")


class EndTxnResponse(Message, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
