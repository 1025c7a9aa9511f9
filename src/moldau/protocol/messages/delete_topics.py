"""DeleteTopics (API key 20): versions 1 to 6, flexible from 4."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = string("6+", default=None, nullable="6+")
    topic_id: Uuid = uuid("6+")


class DeleteTopicsRequest(Message, api_key=ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+"):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+")
    topic_id: Uuid = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", default=None, nullable="5+", ignorable=True)


class DeleteTopicsResponse(Message, api_key=ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+")
