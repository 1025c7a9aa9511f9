"""Records that librdkafka's binding cannot take fail alone."""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode, KafkaError
from moldau.rest.engine.producer import OutgoingRecord, Result, SharedProducer


def test_a_record_with_numbers_out_of_range_is_its_own_error() -> None:
    results = asyncio.run(_send(OutgoingRecord(None, b"v", 1 << 31), OutgoingRecord(None, b"v", 0, 1 << 63)))
    assert all(isinstance(each, KafkaError) for each in results)
    assert {each.code for each in results if isinstance(each, KafkaError)} == {ErrorCode.INVALID_RECORD}


async def _send(*records: OutgoingRecord) -> list[Result]:
    producer = SharedProducer({"bootstrap.servers": "127.0.0.1:1"}, 1000)
    return await asyncio.wait_for(await producer.begin("t", records), 20)
