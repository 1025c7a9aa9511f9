"""The consumer refuses what librdkafka's binding cannot take."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

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
