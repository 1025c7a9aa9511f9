"""Producing with v2: formats, schemas inline and by id, partitions, media types, refused requests."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.harness.rest_proxy import Api, embedded
from tests.integration.rest.conftest import World

AVRO = (
    '{"type":"record","name":"Order","fields":'
    '[{"name":"id","type":"int"},{"name":"note","type":["null","string"]}]}'
)
JSON_SCHEMA = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
PROTOBUF = 'syntax = "proto3";\nmessage Order {\n  int32 id = 1;\n}\n'
#: The format, its schema, a value that fits it, one that does not, and the value as it is read again.
SCHEMAS = [
    ("avro", AVRO, {"id": 1, "note": {"string": "a"}}, {"id": "one"}, {"id": 1, "note": {"string": "a"}}),
    ("jsonschema", JSON_SCHEMA, {"id": 1}, {"id": "one"}, {"id": 1}),
    ("protobuf", PROTOBUF, {"id": 1}, {"id": "one"}, {"id": 1}),
]


def stored(world: World, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
    """Return the keys and values of a partition, read by librdkafka."""
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": "stored"})
    try:
        where = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(where, timeout=10)
        consumer.assign([where])
        found: list[tuple[bytes | None, bytes | None]] = []
        while len(found) < end:
            message = consumer.poll(10)
            assert message is not None and message.error() is None
            key, value = message.key(), message.value()
            found.append((key if key is None else bytes(key), value if value is None else bytes(value)))
        return found
    finally:
        consumer.close()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_binary_records_are_decoded(world: World, rest: Api) -> None:
    records = [
        {"key": b64(b"k"), "value": b64(b"\x00\xff")},
        {"value": b64(b"")},
        {"key": b64(b"k"), "value": None},
    ]
    answer = rest("POST", "/topics/v2-binary", {"records": records}, embedded("binary"))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/vnd.kafka.v2+json"
    assert answer.body == {
        "offsets": [
            {"partition": 0, "offset": offset, "error_code": None, "error": None} for offset in range(3)
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    assert stored(world, "v2-binary") == [(b"k", b"\x00\xff"), (None, b""), (b"k", None)]


def test_json_records_are_written_compactly(world: World, rest: Api) -> None:
    records = [{"key": "ann", "value": {"a": [1, None, "é"]}}, {"value": 3}]
    assert rest("POST", "/topics/v2-json", {"records": records}, embedded("json")).status == 200
    assert stored(world, "v2-json") == [
        (b'"ann"', '{"a":[1,null,"é"]}'.encode()),
        (None, b"3"),
    ]


@pytest.mark.parametrize(
    ("format", "schema", "good", "bad", "read"), SCHEMAS, ids=lambda each: str(each)[:10]
)
def test_records_with_a_schema(
    world: World, rest: Api, format: str, schema: str, good: Any, bad: Any, read: Any
) -> None:
    topic = f"v2-{format}"
    inline = {"value_schema": schema, "records": [{"value": good}]}
    first = rest("POST", f"/topics/{topic}", inline, embedded(format))
    assert first.status == 200, first.body
    id = first.body["value_schema_id"]
    [versions] = [world.registry("GET", f"/subjects/{topic}-value/versions").body]
    assert versions == [1]
    by_id = {"value_schema_id": id, "records": [{"value": good}]}
    for offset, request in enumerate((by_id, {**by_id, "value_schema_id": str(id)}), start=1):
        answer = rest("POST", f"/topics/{topic}/partitions/0", request, embedded(format)).body
        assert answer["offsets"][0]["offset"] == offset
    for _, value in stored(world, topic):
        assert value is not None and value[:5] == b"\0" + id.to_bytes(4, "big")
    refused = rest("POST", f"/topics/{topic}", {**by_id, "records": [{"value": bad}]}, embedded(format))
    assert refused.status in (400, 422)
    assert len(stored(world, topic)) == 3


def test_a_request_with_keys_needs_the_schema_of_keys(rest: Api) -> None:
    kind, record = embedded("avro"), {"key": 1, "value": {"id": 1, "note": None}}
    no_key = rest("POST", "/topics/v2-keys", {"value_schema": AVRO, "records": [record]}, kind)
    assert no_key.error == (422, 42201)
    no_value = rest("POST", "/topics/v2-keys", {"key_schema": '"int"', "records": [record]}, kind)
    assert no_value.error == (422, 42202)
    both = {"key_schema": '"int"', "value_schema": AVRO, "records": [record]}
    assert rest("POST", "/topics/v2-keys", both, kind).body["key_schema_id"] > 0
    assert rest("POST", "/topics/v2-keys", {**both, "key_schema": "{"}, kind).error == (422, 42205)
    assert rest("POST", "/topics/v2-keys", {"value_schema_id": 9999, "records": [record]}, kind).error == (
        422,
        42207,
    )


def test_records_are_sent_to_the_partition_of_the_path_or_of_the_record(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "v2-partitions", "partitions_count": 3})
    body = {"records": [{"value": 1, "partition": 2}, {"value": 2, "partition": 1}]}
    offsets = rest("POST", "/topics/v2-partitions", body, embedded("json")).body["offsets"]
    assert [each["partition"] for each in offsets] == [2, 1]
    chosen = rest("POST", "/topics/v2-partitions/partitions/1", {"records": [{"value": 3}]}, embedded("json"))
    assert chosen.body["offsets"][0]["partition"] == 1
    assert [value for _, value in stored(world, "v2-partitions", 1)] == [b"2", b"3"]
    unknown = rest(
        "POST", "/topics/v2-partitions/partitions/9", {"records": [{"value": 3}]}, embedded("json")
    )
    assert unknown.status == 200
    assert unknown.body["offsets"][0]["error_code"] == 50003


def test_equal_keys_are_sent_to_the_partition_that_java_chooses(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "v2-keyed", "partitions_count": 7})
    body = {"records": [{"key": b64(b"kafka"), "value": b64(b"%d" % n)} for n in range(5)]}
    offsets = rest("POST", "/topics/v2-keyed", body, embedded("binary")).body["offsets"]
    # murmur2("kafka") is 0xd067cf64; its lower 31 bits modulo 7 are 1.
    assert {each["partition"] for each in offsets} == {(0xD067CF64 & 0x7FFFFFFF) % 7}


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        ({"records": []}, embedded("json"), (422, 422)),
        ({}, embedded("json"), (422, 422)),
        ([], embedded("json"), (422, 422)),
        ({"records": [1]}, embedded("json"), (422, 422)),
        ({"records": [{"value": "%%%"}]}, embedded("binary"), (422, 422)),
        ({"records": [{"value": 1}]}, "application/json", (415, 415)),
        ({"records": [{"value": 1}]}, "application/vnd.kafka.v2+json", (415, 415)),
        (b'{"records":[', embedded("json"), (400, 400)),
        (b'{"records":[{"value":"\xff"}]}', embedded("json"), (400, 400)),
        (b'{"records":[{"value":NaN}]}', embedded("json"), (400, 400)),
        (b'{"records":[{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", embedded("json"), (400, 400)),
    ],
)
def test_bad_requests_are_refused(rest: Api, body: Any, kind: str, error: tuple[int, int]) -> None:
    assert rest("POST", "/topics/v2-bad", body, kind).error == error


def test_unknown_topics_and_media_types(rest: Api) -> None:
    assert rest("GET", "/topics/v2-missing").error == (404, 40401)
    assert rest("GET", "/topics/v2-missing/partitions").error == (404, 40401)
    body = json.dumps({"records": [{"value": 1}]}).encode()
    refused = rest("POST", "/topics/v2-json", body, embedded("json"), accept="text/html")
    assert refused.error == (406, 406)
    assert rest("GET", "/nothing").error == (404, 404)
    assert rest("PATCH", "/topics").error == (405, 405)
    assert rest("POST", "/topics/v2%20bad%2Fname", body, embedded("json")).status in (400, 404)


def test_topics_and_partitions_are_described(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "v2-shown", "partitions_count": 2})
    assert "v2-shown" in rest("GET", "/topics").body
    shown = rest("GET", "/topics/v2-shown").body
    assert shown["name"] == "v2-shown"
    assert shown["configs"]["cleanup.policy"] == "delete"
    partition = {"partition": 1, "leader": 1, "replicas": [{"broker": 1, "leader": True, "in_sync": True}]}
    assert shown["partitions"][1] == partition
    assert rest("GET", "/topics/v2-shown/partitions/1").body == partition
    assert rest("GET", "/topics/v2-shown/partitions/5").error == (404, 40402)
    rest("POST", "/topics/v2-shown/partitions/1", {"records": [{"value": 1}]}, embedded("json"))
    offsets = rest("GET", "/topics/v2-shown/partitions/1/offsets").body
    assert offsets == {"beginning_offset": 0, "end_offset": 1}
    assert rest("GET", "/brokers").body == {"brokers": [1]}
