"""The messages of foreign-key joins have the bytes of Kafka Streams."""

from __future__ import annotations

import pytest

from moldau.client.serdes import SerializationError
from moldau.pipelines.streams.tasks.subscriptions import (
    Instruction,
    Response,
    Subscription,
    decode_response,
    decode_subscription,
    encode_response,
    encode_subscription,
    hash_of,
)


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("", "9d2764a018e329428c3cf3b035938518"),
        ("v12", "79f527496c2c0e35623287033c2f4c5e"),
        ("12345678", "ddec8f9026074d665e35523e4a34fe8c"),
        ("123456789012345", "ae037d2b08960000351a1e49bc6671f5"),
        ("1234567890123456", "7eebd4b7e4424c983d2fca5635718acd"),
        ("a longer text than sixteen bytes, é", "920728fe827dd52acef2e7320012af6d"),
    ],
)
def test_hashes_are_those_of_kafka_streams(text: str, java: str) -> None:
    assert (hash_of(text.encode()) or b"").hex() == java


def test_subscriptions_and_responses_have_the_bytes_of_kafka_streams() -> None:
    value_hash = bytes(range(16))
    one = Subscription(value_hash, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE, b"key", 258)
    assert encode_subscription(one) == b"\x01\x02" + value_hash + b"key" + b"\0\0\1\2"
    none = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"key", 0)
    assert encode_subscription(none) == b"\x81\x01key\0\0\0\0"
    assert [decode_subscription(encode_subscription(each)) for each in (one, none)] == [one, none]
    assert encode_response(Response(value_hash, b"v")) == b"\0" + value_hash + b"v"
    assert decode_response(b"\x80") == Response(None, None)
    with pytest.raises(SerializationError, match="Unsupported subscription version 9"):
        decode_subscription(b"\x09\0")
