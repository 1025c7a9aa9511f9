"""DescribeTransactions (API key 65): version 0, flexible from 0."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"):
    transactional_ids: list[str] = array(string, "0+")


class TopicData(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class TransactionState(Struct):
    error_code: int = int16("0+")
    transactional_id: str = string("0+")
    transaction_state: str = string("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_start_time_ms: int = int64("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    topics: list[TopicData] = array(TopicData, "0+")


class DescribeTransactionsResponse(
    Message, api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32("0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
