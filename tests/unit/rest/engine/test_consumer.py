"""The consumer refuses what librdkafka's binding cannot take."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import TopicPartition

from moldau.base.errors import ErrorCode, KafkaError
from moldau.rest.engine.consumer import PolledConsumer


def test_topics_without_a_form_in_utf8_are_refused() -> None:
    asyncio.run(_subscribe_to_half_a_pair())


async def _subscribe_to_half_a_pair() -> None:
    with ThreadPoolExecutor(1) as pool:
        consumer = PolledConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, pool)
        try:
            with pytest.raises(KafkaError) as refused:
                consumer.subscribe(["a", "\ud800"])
            assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        finally:
            await asyncio.wait_for(consumer.close(), 20)


@pytest.mark.parametrize("group", ["a\0b", "\ud800", "g" * 40_000])
def test_group_ids_that_librdkafka_cannot_send_are_refused(group: str) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(KafkaError) as refused:
        PolledConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group}, pool)
    assert refused.value.code is ErrorCode.INVALID_GROUP_ID


def test_an_error_after_records_is_raised_once_by_the_next_call() -> None:
    asyncio.run(_raise_later())


async def _raise_later() -> None:
    with ThreadPoolExecutor(1) as pool:
        consumer = PolledConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, pool)
        try:
            failure = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            consumer.raise_later(failure)
            with pytest.raises(KafkaError) as raised:
                consumer.take()
            assert raised.value is failure
            assert consumer.take() == []
            consumer.raise_later(failure)
            # The error was about the subscription before.
            consumer.subscribe(["t"])
            assert consumer.take() == []
        finally:
            await asyncio.wait_for(consumer.close(), 20)
        for call in (consumer.take, lambda: consumer.store([TopicPartition("t", 0, 0)])):
            with pytest.raises(KafkaError) as closed:
                call()
            assert closed.value.code is ErrorCode.UNKNOWN_MEMBER_ID
