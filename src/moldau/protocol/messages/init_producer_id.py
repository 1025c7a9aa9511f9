"""InitProducerId (API key 22): versions 0 to 6, flexible from 2."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, bool_, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+"):
    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = bool_("6+")
    keep_prepared_txn: bool = bool_("6+")


class InitProducerIdResponse(Message, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+"):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
