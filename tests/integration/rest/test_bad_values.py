"""Valid JSON with values that Kafka's clients cannot take: an error, and a proxy that works as before."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.rpc import error_details_pb2

from moldau.base.ids import TopicPartition
from tests.harness.broken_headers import write_broken_headers
from tests.harness.rest_proxy import V2, Api, embedded
from tests.integration.rest.conftest import World
from tests.integration.rest.test_v2_consume import Instance, instance
from tests.integration.rest.test_v3_produce import produce
from tests.integration.rest.test_v3_read import read

#: Half of a surrogate pair: valid in JSON as an escape, without a form in UTF-8.
HALF = "\ud800"


@pytest.fixture(scope="module")
def reader(world: World) -> Iterator[Instance]:
    with instance(world.rest, "g-values") as created:
        yield created


def test_names_without_a_form_in_utf8_are_refused(world: World, rest: Api, reader: Instance) -> None:
    header = {"headers": [{"name": HALF, "value": ""}], "value": {"type": "STRING", "data": "a"}}
    [answer] = produce(world, "values-names", header)
    assert answer["error_code"] == 400
    for path, body in (
        ("subscription", {"topics": [HALF]}),
        ("subscription", {"topic_pattern": HALF}),
        ("assignments", {"partitions": [{"topic": HALF, "partition": 0}]}),
        ("positions", {"offsets": [{"topic": HALF, "partition": 0, "offset": 0}]}),
    ):
        assert rest("POST", f"{reader.path}/{path}", body, V2).error == (422, 422), body


#: Larger than the types of Kafka: a partition, an offset, and a number that Python does not convert.
BIG, HUGE, LONG = 1 << 31, 1 << 63, "9" * 5000
WHERE = {"topic": "values", "partition": 0}


def test_v2_values_out_of_range_are_refused(rest: Api, reader: Instance) -> None:
    for path, body in (
        ("assignments", {"partitions": [{"topic": "values", "partition": BIG}]}),
        ("assignments", {"partitions": [{"topic": "values", "partition": True}]}),
        ("assignments", {"partitions": [{"topic": "a\0b", "partition": 0}]}),
        ("assignments", {"partitions": [{"topic": "x" * 40_000, "partition": 0}]}),
        ("subscription", {"topics": ["x" * 40_000]}),
        ("positions", {"offsets": [{**WHERE, "offset": HUGE}]}),
        ("positions", {"offsets": [{**WHERE, "offset": 1e400}]}),
        ("positions", {"timestamps": [{**WHERE, "timestamp": HUGE}]}),
        ("positions", {"timestamps": [{**WHERE, "timestamp": []}]}),
        ("positions/end", {"partitions": [{"topic": "values", "partition": BIG}]}),
        ("offsets", {"offsets": [{**WHERE, "offset": HUGE - 1}]}),
        ("offsets", {"offsets": [{"topic": "values", "partition": BIG, "offset": 0}]}),
        ("offsets", {"offsets": [{**WHERE, "offset": 0, "metadata": HALF}]}),
        ("offsets", {"offsets": [{**WHERE, "offset": 0, "metadata": "a\0b"}]}),
        ("offsets", {"offsets": [{**WHERE, "offset": 0, "metadata": "x" * 40_000}]}),
    ):
        text = json.dumps(body).replace("Infinity", "1e400").encode()
        assert rest("POST", f"{reader.path}/{path}", text, V2).error == (422, 422), body
    committed = {"partitions": [{"topic": "values", "partition": BIG}]}
    assert rest("GET", f"{reader.path}/offsets", committed, V2).error == (422, 422)
    assert rest("GET", f"{reader.path}/records?timeout={LONG}", accept=embedded("json")).status == 404


@pytest.mark.parametrize(
    "config",
    [
        b'{"consumer.request.timeout.ms":1e400}',
        b'{"consumer.request.timeout.ms":1e300}',
        b'{"consumer.request.timeout.ms":"%s"}' % (b"9" * 400),
        b'{"fetch.min.bytes":[]}',
        b'{"name":"\\ud800"}',
        b'{"name":"a\\u0000b"}',
        b'{"name":{}}',
        b'{"format":[]}',
        b'{"auto.offset.reset":"\\ud800"}',
        b'{"auto.offset.reset":"a\\u0000b"}',
    ],
)
def test_configs_of_instances_that_are_not_valid(rest: Api, config: bytes) -> None:
    assert rest("POST", "/consumers/g-config", config, V2).error == (422, 422)


def test_produced_values_that_are_not_valid(world: World, rest: Api) -> None:
    for record in (b'{"value":1,"partition":2147483648}', b'{"value":1e999}', b'{"value":[-1e999]}'):
        body = b'{"records":[%s]}' % record
        assert rest("POST", "/topics/values", body, embedded("json")).error == (422, 422), record
    for number in (str(BIG), "-1", "²", LONG):
        path = f"/topics/values/partitions/{quote(number)}"
        one = {"records": [{"value": 1}]}
        assert rest("POST", path, one, embedded("json")).error == (404, 404), number
    for depth in range(880, 1000, 12):
        nested = b'{"records":[{"value":%s}]}' % (b"[" * depth + b"]" * depth)
        assert rest("POST", "/topics/values", nested, embedded("json")).status in (200, 400, 422), depth
        record = b'{"value":{"type":"BINARY","data":%s}}' % (b"[" * depth + b"]" * depth)
        produced = rest("POST", world.v3("/topics/values/records"), record)
        assert produced.body["error_code"] == 400, depth


def test_misspelled_fields_are_refused_and_write_nothing(world: World, rest: Api) -> None:
    for body in ({"records": [{"vlaue": 1}]}, {"records": [{"value": 1}], "value_shcema": "{}"}):
        for path in ("/topics/values-fields", "/topics/values-fields/partitions/0"):
            refused = rest("POST", path, body, embedded("json"))
            assert refused.error == (422, 422)
            assert refused.body["message"].startswith("Unrecognized field: v")
    value = {"type": "JSON", "data": 1}
    entries = (
        {"vlaue": value},
        {"value": {**value, "shcema": 1}},
        {"value": value, "headers": [{"nmae": "h"}]},
    )
    failed = produce(world, "values-fields", *entries, {"id": "1", "value": value})
    assert [each["error_code"] for each in failed] == [400] * 4
    assert 'Unrecognized field "vlaue"' in failed[0]["message"]
    batch = {"entries": [{"id": "1", **entries[0]}, {"id": "2", "value": value}]}
    assert rest("POST", world.v3("/topics/values-fields/records:batch"), batch).error == (422, 422)
    assert rest("POST", world.v3("/topics"), {"topic_name": "values-fields", "partitions": 3}).error == (
        422,
        422,
    )
    assert rest("POST", "/consumers/g-fields", {"auto.offset.rest": "earliest"}, V2).error == (422, 422)
    assert rest("GET", world.v3("/topics/values-fields")).status == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/topics", {"topic_name": "v-count", "partitions_count": BIG}),
        ("POST", "/topics", b'{"topic_name":"v-count","partitions_count":1e400}'),
        ("POST", "/topics", b'{"topic_name":"v-count","partitions_count":1e300}'),
        ("POST", "/topics", {"topic_name": "v-count", "replication_factor": 1 << 15}),
        ("POST", "/topics", {"topic_name": "v-count", "replicas_assignments": {"0": [BIG]}}),
        ("POST", "/topics", {"topic_name": "v-count", "configs": [{"name": 1, "value": 1}]}),
        ("POST", "/topics", {"topic_name": "v-count", "configs": [{"name": HALF, "value": 1}]}),
        ("POST", "/topics", {"topic_name": HALF}),
        ("PATCH", "/topics/values", {"partitions_count": BIG}),
        ("POST", "/topics/values/configs:alter", {"data": [{"name": "retention.ms", "value": HALF}]}),
        ("POST", "/topics/values/configs:alter", {"data": [{"name": "retention.ms", "value": []}]}),
        ("POST", "/topics/-/configs:alter", {"data": [{"configs": []}]}),
        ("POST", "/acls", {"resource_type": "TOPIC", "resource_name": HALF}),
        ("POST", "/acls:batch", {"data": [{"principal": HALF}]}),
        ("POST", "/consumer-groups/g/offsets", {"offsets": [{"topic_name": "values"}]}),
        ("GET", "/topics/values/records?limit=%C2%B2", None),
        ("GET", f"/topics/values/records?limit={HUGE}", None),
        ("GET", f"/topics/values/records?max_wait_ms={'9' * 400}", None),
        ("GET", "/topics/values/records?timestamp=%C2%B2", None),
        ("GET", f"/topics/values/records?timestamp={HUGE}", None),
        ("GET", f"/topics/values/records?offsets=0:{HUGE}", None),
        ("GET", "/topics/values/records?" + "&".join(f"a{n}=1" for n in range(101)), None),
        ("GET", "/acls?" + "&".join(f"a{n}=1" for n in range(101)), None),
        ("GET", f"/brokers/{BIG}", None),
        ("GET", "/topics/values/partitions/%C2%B2", None),
    ],
    ids=lambda each: str(each)[:40],
)
def test_v3_values_that_are_not_valid(world: World, rest: Api, method: str, path: str, body: object) -> None:
    produce(world, "values", {"value": {"type": "JSON", "data": 1}})
    assert rest(method, world.v3(path), body).status in (400, 404, 422)


def test_committed_offsets_out_of_range_are_refused(world: World, rest: Api) -> None:
    path = world.v3("/consumer-groups/g-values-v3/offsets")
    good = {"topic_name": "values", "partition_id": 0, "offset": 1}
    for bad in ({"partition_id": BIG}, {"offset": HUGE - 1}, {"topic_name": HALF}, {"topic_name": "a\0b"}):
        assert rest("POST", path, {"offsets": [{**good, **bad}]}).status in (400, 422), bad


def test_times_after_the_year_9999_are_shown(world: World) -> None:
    any_time = {"name": "message.timestamp.after.max.ms", "value": HUGE - 1}
    topic = {"topic_name": "values-late", "configs": [any_time]}
    assert world.rest("POST", world.v3("/topics"), topic).status == 201
    producer = Producer({"bootstrap.servers": world.bootstrap})
    producer.produce("values-late", b"1", timestamp=HUGE - 1)
    assert producer.flush(20) == 0
    [shown] = read(world, "/topics/values-late/records")
    assert shown["timestamp"] == "+292278994-08-17T07:12:55.807Z"


def test_a_deeply_nested_record_does_not_end_the_proxy(world: World, rest: Api) -> None:
    schema = '{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}'
    value = {"type": "AVRO", "schema": schema, "data": {"n": {"L": {"n": None}}}}
    [good] = produce(world, "values-deep", {"value": value})
    frame = b"\0" + good["value"]["schema_id"].to_bytes(4, "big")
    for levels in (300, 100_000):
        data = base64.b64encode(frame + b"\x02" * levels + b"\0").decode()
        produce(world, "values-deep", {"value": {"type": "BINARY", "data": data}})
    first, *deep = read(world, "/topics/values-deep/records?value_type=schema")
    assert first["value"]["data"] == {"n": {"L": {"n": None}}}
    assert [each["value"]["type"] for each in deep] == ["BINARY", "BINARY"]
    assert all("nested" in each["value"]["error"] for each in deep)
    with instance(rest, "g-values-deep", "avro") as each:
        each.assign("values-deep", 0)
        assert each.values(1) == [{"n": {"L": {"n": None}}}]
        refused = rest("GET", f"{each.path}/records?timeout=200", accept=embedded("avro"))
        assert refused.error == (408, 40801)
    nested = b'{"L":{"n":' * 400 + b"null" + b"}}" * 400
    text = b'{"value":{"type":"AVRO","schema":%s,"data":{"n":%s}}}' % (json.dumps(schema).encode(), nested)
    produced = rest("POST", world.v3("/topics/values-deep/records"), text)
    assert produced.body["error_code"] == 422
    endless = '{"type":"record","name":"E","fields":[{"name":"f","type":["E","null"],"default":{}}]}'
    value = {"type": "AVRO", "schema": endless, "data": {}}
    [failed] = produce(world, "values-endless", {"value": value})
    assert failed["error_code"] in (400, 422)


def test_protobuf_with_its_schema_in_a_header(world: World, rest: Api) -> None:
    """Confluent's serializer writes the GUID and the message type into the header."""
    message = error_details_pb2.QuotaFailure.Violation(subject="user", description="too much")
    headers: list[tuple[str, bytes]] = []
    client = SchemaRegistryClient({"url": f"http://127.0.0.1:{world.registry.port}"})
    serializer = ProtobufSerializer(
        type(message), client, conf={"schema.id.serializer": header_schema_id_serializer}
    )
    written = serializer(message, SerializationContext("values-guid", MessageField.VALUE, headers))
    producer = Producer({"bootstrap.servers": world.bootstrap})
    producer.produce("values-guid", written, headers=headers)
    assert producer.flush(20) == 0
    [shown] = read(world, "/topics/values-guid/records")
    assert shown["value"]["type"] == "PROTOBUF"
    assert shown["value"]["data"]["subject"] == "user"
    with instance(rest, "g-values-guid", "protobuf") as each:
        each.assign("values-guid", 0)
        assert each.values(1)[0]["description"] == "too much"


def test_header_names_that_are_not_utf8(world: World, rest: Api) -> None:
    """The binding of librdkafka returns such names as holes, which end the process if they are touched."""
    produce(world, "values-header", {"value": {"type": "JSON", "data": 0}})
    count = 30
    write_broken_headers(world.bootstrap, TopicPartition("values-header", 0), count)
    _, *shown = read(world, "/topics/values-header/records")
    headers = [("\ufffd", "eA=="), ("fine", "eQ=="), ("\ufffd", None)]
    names = [[(each["name"], each["value"]) for each in record["headers"]] for record in shown]
    assert names == [headers] * count
    with instance(rest, "g-values-header", "json") as each:
        each.assign("values-header", 0)
        assert each.values(1 + count) == list(range(1 + count))
        each.post("positions/beginning", {"partitions": [{"topic": "values-header", "partition": 0}]})
        assert each.values(1 + count) == list(range(1 + count))


def test_groups_that_librdkafka_cannot_send(world: World, rest: Api) -> None:
    for group in ("a%00b", "g" * 40_000):
        assert rest("POST", f"/consumers/{group}", {}, V2).error == (422, 42204)
        path = world.v3(f"/consumer-groups/{group}/records?topics=values")
        assert rest("GET", path).status == 400
