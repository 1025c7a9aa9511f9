from __future__ import annotations

import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.base.errors import KafkaError
from moldau.client.serdes import SerializationError, deserializer, serializer

#: What Java's serializers write.
JAVA = [
    ("string", "Grüße", "4772c3bcc39f65"),
    ("short", -2, "fffe"),
    ("int", 123456, "0001e240"),
    ("long", -1, "ffffffffffffffff"),
    ("float", 1.5, "3fc00000"),
    ("double", math.pi, "400921fb54442d18"),
    ("uuid", uuid.UUID(int=1), b"00000000-0000-0000-0000-000000000001".hex()),
    ("bytes", b"\x00\xff", "00ff"),
]


@pytest.mark.parametrize(("name", "value", "written"), JAVA)
def test_serialized_bytes_equal_java(name: str, value: Any, written: str) -> None:
    assert serializer(name).serialize("t", value) == bytes.fromhex(written)
    assert deserializer(name).deserialize("t", bytes.fromhex(written)) == value


@pytest.mark.parametrize("name", [name for name, _, _ in JAVA] + ["json"])
def test_none_stays_none(name: str) -> None:
    assert serializer(name).serialize("t", None) is None
    assert deserializer(name).deserialize("t", None) is None


json_values = st.recursive(
    st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_json_round_trip(value: Any) -> None:
    written = serializer("json").serialize("t", value)
    assert deserializer("json").deserialize("t", written) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", 5),
        ("string", "\ud800"),
        ("bytes", "text"),
        ("int", 2**31),
        ("int", "x"),
        ("json", object()),
    ],
)
def test_unserializable_value_is_reported(name: str, value: Any) -> None:
    with pytest.raises(SerializationError, match="t: "):
        serializer(name).serialize("t", value)


@pytest.mark.parametrize(
    ("name", "data"), [("string", b"\xff"), ("int", b"123"), ("json", b"{"), ("uuid", b"x")]
)
def test_undeserializable_bytes_are_reported(name: str, data: bytes) -> None:
    with pytest.raises(SerializationError, match="t: "):
        deserializer(name).deserialize("t", data)


def test_java_class_names_are_accepted() -> None:
    java = "org.apache.kafka.common.serialization."
    assert serializer(java + "IntegerSerializer").serialize("t", 1) == b"\0\0\0\1"
    assert deserializer(java + "ByteArrayDeserializer").deserialize("t", b"x") == b"x"


def test_unknown_serializer_is_refused_with_the_known_names() -> None:
    with pytest.raises(KafkaError, match=r"Unknown serializer 'strng'.*string"):
        serializer("strng")


def test_serializer_is_chosen_by_object_or_class() -> None:
    class Upper:
        def serialize(self, topic: str, data: str, headers: Any = ()) -> bytes:
            return data.upper().encode()

    assert serializer(Upper).serialize("t", "a") == serializer(Upper()).serialize("t", "a") == b"A"


def test_avro_round_trip_with_schema() -> None:
    from moldau.client.schema_serdes import AvroDeserializer, AvroSerializer

    schema = {"type": "record", "name": "Price", "fields": [{"name": "cents", "type": "long"}]}
    written = AvroSerializer(schema).serialize("t", {"cents": 42})
    assert written == b"\x54"
    assert AvroDeserializer(schema).deserialize("t", written) == {"cents": 42}
    with pytest.raises(SerializationError, match="schema"):
        AvroSerializer(schema).serialize("t", {"cents": "x"})
    with pytest.raises(SerializationError, match="unexpected bytes"):
        AvroDeserializer(schema).deserialize("t", b"\x54\x54")


def test_protobuf_round_trip_with_message_class() -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    from moldau.client.schema_serdes import ProtobufDeserializer, ProtobufSerializer

    written = ProtobufSerializer().serialize("t", Timestamp(seconds=5))
    assert written == b"\x08\x05"
    assert ProtobufDeserializer(Timestamp).deserialize("t", written) == Timestamp(seconds=5)
    with pytest.raises(SerializationError, match="Timestamp"):
        ProtobufDeserializer(Timestamp).deserialize("t", b"\xff")
