"""AllocateProducerIds (API key 67): version 0, flexible from 0."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message, api_key=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)


class AllocateProducerIdsResponse(Message, api_key=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id_start: int = int64("0+")
    producer_id_len: int = int32("0+")
