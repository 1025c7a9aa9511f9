"""Declarations, constructors, and encoding rules that a comparison with other libraries does not cover."""

from __future__ import annotations

import linecache
import subprocess
import sys
import traceback

import pytest

from moldau.base.ids import ZERO_UUID, Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS, api_by_name
from moldau.protocol.compiler import source
from moldau.protocol.fields import FRESH, Field, StructType
from moldau.protocol.json_form import from_json, to_json
from moldau.protocol.messages import fetch
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.schema import (
    DecodeError,
    EncodeError,
    Message,
    Struct,
    Versions,
    array,
    decode,
    encode,
    encode_bytes,
    int8,
    int32,
    records_view,
    shares_default,
    string,
    struct,
    uuid,
)
from moldau.protocol.stored.consumer_groups import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from moldau.protocol.stored.quorum_state import QuorumStateData
from moldau.protocol.writer import smallest_type_size
from tests.wire.catalog import every_version


class Point(Struct):
    x: int = int32("0+")
    y: int = int32("0+", default=-1)


class Shape(Message, versions="0-2", flexible="1+"):
    name: str | None = string("0+", nullable="1+")
    points: list[Point] = array(Point, "0+")
    colour: int = int8("1+", default=3)
    owner: str = string("2+", ignorable=True)
    origin: Point = struct(Point, "1+", tagged="1+", tag=0)
    ids: list[Uuid] = array(uuid, "2+", tagged="2+", tag=5)


def test_null_struct_in_a_tagged_field_is_one_zero_byte() -> None:
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    data = encode_bytes(value, 0)
    # As Apache Kafka 4.3 stores a member of the consumer protocol: one tag, number 0, one byte, 0.
    assert data.endswith(b"\x01\x00\x01\x00")
    assert decode(ConsumerGroupMemberMetadataValue, data, 0).classic_member_metadata is None
    value.classic_member_metadata = ClassicMemberMetadata(session_timeout_ms=7)
    data = encode_bytes(value, 0)
    assert data.endswith(b"\x01\x00\x07\x01\x00\x00\x00\x07\x01\x00")
    assert decode(ConsumerGroupMemberMetadataValue, data, 0) == value


def test_defaults_are_not_shared_and_fields_are_keyword_only() -> None:
    first, second = Shape(), Shape(name="a")
    assert (first.name, first.points, first.colour, first.owner) == ("", [], 3, "")
    first.points.append(Point(x=1))
    assert second.points == []
    assert first != second
    assert Shape(name="a") == second
    assert repr(Point(x=1)) == "Point(x=1, y=-1)"
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg, misc]
    with pytest.raises(TypeError):
        Point(z=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        first.colour_of_hair = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(first)


def test_default_of_a_tagged_struct_is_shared_and_immutable() -> None:
    first = Shape()
    assert first.origin is Shape().origin
    assert first.origin == Point()
    assert isinstance(first.origin, Point)
    assert repr(first.origin) == "Point(x=0, y=-1)"
    with pytest.raises(AttributeError, match="assign a new one"):
        first.origin.x = 5
    assert encode_bytes(Shape(origin=Point()), 1) == encode_bytes(first, 1), "equal to the default: not sent"
    assert decode(Shape, encode_bytes(Shape(origin=Point(x=5)), 1), 1).origin == Point(x=5)


def test_shared_defaults_contain_no_mutable_values() -> None:
    for cls, _ in every_version():
        for field in walk(cls):
            if shares_default(field):
                assert all(inner.default is not FRESH for inner in field.type.FIELDS)


def walk(cls: StructType) -> list[Field]:
    fields = list(cls.FIELDS)
    for field in cls.FIELDS:
        if field.struct is not None:
            fields += walk(field.struct)
    return fields


def test_every_array_element_takes_at_least_a_byte() -> None:
    """Otherwise an array of two billion elements could have no bytes."""
    for cls, version in every_version():
        for field in walk(cls):
            if field.is_array and field.versions.has(version):
                assert smallest_type_size(field.type, version, cls.FLEXIBLE.has(version)) >= 1, (cls, field)


def test_field_missing_in_a_version_must_have_its_default() -> None:
    assert encode_bytes(Shape(owner="me"), 1) == encode_bytes(Shape(), 1), "ignorable: dropped"
    with pytest.raises(EncodeError, match=r"version 0 has no Shape\.colour"):
        encode(Shape(colour=4), 0)
    with pytest.raises(EncodeError, match="origin"):
        encode(Shape(origin=Point(x=1)), 0)
    with pytest.raises(EncodeError, match="ids"):
        encode(Shape(ids=[ZERO_UUID]), 1)
    read = decode(Shape, encode_bytes(Shape(name="n"), 0), 0)
    assert (read.colour, read.owner, read.ids) == (3, "", [])


def test_encode_error_names_the_field() -> None:
    broken = ProduceRequest(
        topic_data=[TopicProduceData(name="a"), TopicProduceData(name=None)]  # type: ignore[arg-type]
    )
    with pytest.raises(EncodeError, match=r"topic_data\[1\]\.name may not be null"):
        encode(broken, 9)
    for message, version, part in [
        (Shape(colour=128), 1, r"Shape\.colour is not an int8: 128"),
        (Shape(name=None), 0, r"Shape\.name may not be null"),
        (Shape(name=5), 0, r"Shape\.name must be a string, not int"),  # type: ignore[arg-type]
        (Shape(name="\ud800"), 0, r"Shape\.name cannot be written as UTF-8"),
        (Shape(name="x" * 32768), 0, r"Shape\.name is 32768 bytes long"),
        (Shape(name="x" * 32768), 1, r"a string of 32768 bytes"),
        (Shape(points=None), 0, r"Shape\.points may not be null"),  # type: ignore[arg-type]
        (Shape(points=[None]), 1, r"Shape\.points\[0\] must be a Point"),  # type: ignore[list-item]
        (Shape(points=[Point(x=2**31)]), 0, r"Shape\.points\[0\]\.x is not an int32"),
    ]:
        with pytest.raises(EncodeError, match=part):
            encode(message, version)
    with pytest.raises(EncodeError, match="16 bytes"):
        encode(Shape(ids=[Uuid(b"short")]), 2)
    with pytest.raises(EncodeError, match="no version 7"):
        encode(Shape(), 7)


def test_damaged_message_is_a_decode_error_with_its_reason() -> None:
    data = encode_bytes(Shape(name="n", points=[Point()]), 2)
    for damaged, part in [
        (data + b"\0", "1 bytes left over"),
        (data[:-1], "ends too early"),
        (b"\x02\xff" + data[2:], "not UTF-8"),
        (b"\x7f" + data[1:], "extends past the end"),
        (data[:2] + b"\xff\xff\xff\xff\x07" + data[3:], "extends past the end"),
        (data[:2] + b"\xff\xff\xff\xff\xff\x07" + data[3:], "five bytes"),
        (data[:2] + b"\x00" + data[3:], "points may not be null"),
        (b"\x82\x80\x02" + bytes(40000), "exceeds the maximum of 32767"),
    ]:
        with pytest.raises(DecodeError, match=part):
            decode(Shape, damaged, 2)


def test_unknown_tags_are_skipped_and_known_tags_must_have_their_size() -> None:
    plain = encode_bytes(Shape(name="n"), 2)
    assert plain.endswith(b"\0")
    assert decode(Shape, plain[:-1] + b"\x02\x07\x03abc\x80\x01\x00", 2) == Shape(name="n")
    many = b"".join(bytes([0x80 | tag & 0x7F, tag >> 7]) + b"\x01x" for tag in range(128, 428))
    assert decode(Shape, plain[:-1] + b"\xac\x02" + many, 2) == Shape(name="n")
    for damaged in (
        b"\x01\x00\x0a\0\0\0\1\0\0\0\2\0\0",
        b"\x01\x07\x7fab",
        b"\x01\x00\x05\0\0\0\1\0",
        b"\x01\x07",
    ):
        with pytest.raises(DecodeError):
            decode(Shape, plain[:-1] + damaged, 2)


def test_large_payloads_are_separate_parts() -> None:
    large, small = memoryview(bytes(10_000)), memoryview(bytes(10))
    response = FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                partitions=[
                    fetch.PartitionData(records=large),
                    fetch.PartitionData(records=small),
                    fetch.PartitionData(records=[large, large]),
                    fetch.PartitionData(records=[]),
                    fetch.PartitionData(records=None),
                ]
            )
        ]
    )
    for version in (4, 11, 12, 18):
        parts = encode(response, version)
        assert [part is large for part in parts] == [False, True, False, True, True, False]
        joined = b"".join(parts)
        found = decode(FetchResponse, joined, version).responses[0].partitions
        assert [len(records_view(partition.records)) for partition in found] == [10_000, 10, 20_000, 0, 0]
        assert found[4].records is None


def test_records_are_not_copied() -> None:
    request = ProduceRequest(
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(records=memoryview(b"abc" * 10))])
        ]
    )
    frame = bytearray(encode_bytes(request, 9))
    records = decode(ProduceRequest, memoryview(frame), 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert not records.readonly, "a broker patches offsets in place"


def test_topic_is_named_or_identified_by_version() -> None:
    topic_id = Uuid(bytes(range(16)))
    request = FetchRequest(
        topics=[FetchTopic(topic="t", topic_id=topic_id)],
        forgotten_topics_data=[ForgottenTopic(topic="f", topic_id=topic_id, partitions=[1])],
    )
    assert decode(FetchRequest, encode_bytes(request, 12), 12).topics[0].topic == "t"
    assert decode(FetchRequest, encode_bytes(request, 13), 13).topics[0].topic_id == topic_id
    assert decode(MetadataRequest, encode_bytes(MetadataRequest(topics=None), 1), 1).topics is None
    with pytest.raises(EncodeError):
        encode(MetadataRequest(topics=None), 0)
    nameless = MetadataResponse(topics=[MetadataResponseTopic(name=None)])
    with pytest.raises(EncodeError):
        encode(nameless, 11)
    assert decode(MetadataResponse, encode_bytes(nameless, 12), 12).topics[0].name is None


def test_generated_source_appears_in_tracebacks() -> None:
    text = source(CreateTopicsRequest, 7)
    assert "def encode(o):" in text
    assert "def decode(data, pos):" in text
    with pytest.raises(ValueError):
        source(CreateTopicsRequest, 99)
    try:
        encode(CreateTopicsRequest(topics=[CreatableTopic(name=None)]), 7)  # type: ignore[arg-type]
    except EncodeError as error:
        shown = "".join(traceback.format_exception(error))
        assert ".name.encode()" in shown, "the line of generated code"
    assert linecache.getlines("<CreateTopicsRequest v7 encode>")


def test_json_form_of_a_message() -> None:
    state = QuorumStateData(leader_id=1, leader_epoch=2, voted_directory_id=Uuid(bytes(range(16))))
    form = to_json(state, 1)
    assert form == {
        "leaderId": 1,
        "leaderEpoch": 2,
        "votedId": -1,
        "votedDirectoryId": "AAECAwQFBgcICQoLDA0ODw",
    }
    assert from_json(QuorumStateData, {**form, "data_version": 1}, 1) == state
    for damaged in (
        [],
        {},
        {**form, "leaderId": "1"},
        {**form, "leaderId": True},
        {**form, "leaderId": None},
        {**form, "votedDirectoryId": "?"},
    ):
        with pytest.raises(DecodeError):
            from_json(QuorumStateData, damaged, 1)
    with pytest.raises(DecodeError):
        from_json(QuorumStateData, form, 9)
    with pytest.raises(EncodeError):
        to_json(state, 9)


def test_versions_are_parsed() -> None:
    assert Versions.parse("3-13") == (3, 13)
    assert Versions.parse("9+") == (9, 0x7FFF)
    assert Versions.parse("0") == (0, 0)
    assert not any(Versions.parse("none").has(version) for version in range(5))


def test_api_table_has_every_request() -> None:
    assert len(APIS) == 89
    assert set(ApiKey) == set(APIS)
    assert not {4, 5, 6, 7} & set(APIS)
    assert api_by_name["Produce"] is APIS[ApiKey.PRODUCE]
    assert [api.name for api in APIS.values() if api.latest_unstable] == ["InitProducerId"]
    assert APIS[ApiKey.API_VERSIONS].request is ApiVersionsRequest
    for api in APIS.values():
        for message in (api.request, api.response):
            assert api.key == message.API_KEY
            assert Versions(api.min_version, api.max_version) == message.VERSIONS
            assert message.FLEXIBLE.has(api.max_version) == api.is_flexible(api.max_version)


def test_api_table_imports_no_message() -> None:
    code = (
        "import sys, moldau.protocol.apis\n"
        "print([name for name in sys.modules if name.startswith('moldau.protocol.')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "['moldau.protocol.api_keys', 'moldau.protocol.apis']"
