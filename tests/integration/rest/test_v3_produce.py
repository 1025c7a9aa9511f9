"""Producing with v3: types, schemas, headers, streams with results while records are being sent, batches."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from moldau.rest.engine.clients import Clients
from moldau.rest.engine.producer import OutgoingRecord
from moldau.rest.formats.schemas import SchemaFormats
from moldau.rest.request import Request
from moldau.rest.settings import RestSettings
from moldau.rest.v3.records.batch import produce_batch
from moldau.testing import Cluster
from tests.harness.rest_proxy import Api, embedded, rest_proxy
from tests.integration.rest.conftest import World
from tests.integration.rest.test_v2_produce import SCHEMAS, stored


def results(text: bytes) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def produce(world: World, topic: str, *records: Any) -> list[Any]:
    """Send records in one request and return their results."""
    body = b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in records)
    status, text, _ = world.rest.raw(
        "POST", world.v3(f"/topics/{topic}/records"), body, {"Content-Type": "application/json"}
    )
    assert status == 200, text
    return results(text)


class OpenRequest:
    """A request with a chunked body that is still being sent."""

    def __init__(self, api: Api, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", api.port), timeout=20)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        self._file = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def head(self) -> int:
        status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass
        return status

    def chunk(self) -> bytes:
        """Return the next piece of the response; empty at its end."""
        size = int(self._file.readline(), 16)
        data = self._file.read(size)
        self._file.readline()
        return data

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@contextmanager
def open_request(api: Api, path: str) -> Iterator[OpenRequest]:
    opened = OpenRequest(api, path)
    try:
        yield opened
    finally:
        opened.close()


def test_types_without_a_schema(world: World) -> None:
    encoded = base64.b64encode(b"\x00\x01").decode()
    produced = produce(
        world,
        "p3-plain",
        {"key": {"type": "BINARY", "data": encoded}, "value": {"type": "JSON", "data": {"a": 1}}},
        {"key": {"type": "STRING", "data": "é"}, "value": {"type": "STRING", "data": "text"}},
        {"value": {"type": "JSON", "data": None}},
    )
    assert [each["error_code"] for each in produced] == [200, 200, 200]
    first = produced[0]
    assert (first["cluster_id"], first["topic_name"]) == (world.cluster_id, "p3-plain")
    assert (first["partition_id"], first["offset"]) == (0, 0)
    assert first["key"] == {"type": "BINARY", "size": 2}
    assert first["value"] == {"type": "JSON", "size": 7}
    assert first["timestamp"].endswith("Z")
    assert "key" not in produced[2]
    assert stored(world, "p3-plain") == [(b"\x00\x01", b'{"a":1}'), ("é".encode(), b"text"), (None, None)]


def test_headers_timestamp_and_partition(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "p3-headers", "partitions_count": 3})
    record = {
        "partition_id": 2,
        "timestamp": "2021-02-05T19:14:42.123Z",
        "headers": [{"name": "a", "value": base64.b64encode(b"1").decode()}, {"name": "b"}],
        "value": {"type": "STRING", "data": "x"},
    }
    [produced] = produce(world, "p3-headers", record)
    assert (produced["partition_id"], produced["timestamp"]) == (2, "2021-02-05T19:14:42.123Z")
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": "headers"})
    try:
        consumer.assign([TopicPartition("p3-headers", 2, 0)])
        message = consumer.poll(10)
        assert message is not None
        assert message.headers() == [("a", b"1"), ("b", None)]
        assert message.timestamp() == (1, 1612552482123)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("format", "schema", "good", "bad", "read"), SCHEMAS, ids=lambda each: str(each)[:10]
)
def test_types_with_a_schema(world: World, format: str, schema: str, good: Any, bad: Any, read: Any) -> None:
    topic = f"p3-{format}"
    by_text = {"value": {"type": format.upper(), "schema": schema, "data": good}}
    [first] = produce(world, topic, by_text)
    shown = first["value"]
    assert (shown["type"], shown["subject"], shown["schema_version"]) == (format.upper(), f"{topic}-value", 1)
    id = shown["schema_id"]
    others = [
        {"value": {"schema_id": id, "data": good}},
        {"value": {"schema_version": 1, "data": good}},
        {"value": {"subject": f"{topic}-value", "data": good}},
        {"value": {"data": good}},
        {"value": {"schema_id": id, "data": None}},
    ]
    assert [each["error_code"] for each in produce(world, topic, *others)] == [200] * 5
    values = [value for _, value in stored(world, topic)]
    assert set(values[:5]) == {values[0]} and values[5] is None
    refused = produce(world, topic, {"value": {"schema_id": id, "data": bad}})
    assert refused[0]["error_code"] == 400


def test_schema_with_a_reference(world: World) -> None:
    address = '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}'
    person = '{"type":"record","name":"Person","fields":[{"name":"home","type":"Address"}]}'
    world.registry("POST", "/subjects/p3-address/versions", {"schema": address})
    references = [{"name": "Address", "subject": "p3-address", "version": 1}]
    body = {"schema": person, "references": references}
    id = world.registry("POST", "/subjects/p3-person-value/versions", body).body["id"]
    data = {"home": {"city": "Děčín"}}
    [produced] = produce(world, "p3-person", {"value": {"schema_id": id, "data": data}})
    assert produced["error_code"] == 200, produced
    _, text, _ = world.rest.raw("GET", world.v3("/topics/p3-person/records"))
    assert results(text)[0]["value"] == {"type": "AVRO", "schema_id": id, "data": data}


def test_subject_name_strategies(world: World) -> None:
    schema = '{"type":"record","name":"Named","namespace":"n","fields":[]}'
    for strategy, subject in (
        ("TOPIC_NAME", "p3-strategies-value"),
        ("RECORD_NAME", "n.Named"),
        ("TOPIC_RECORD_NAME", "p3-strategies-n.Named"),
    ):
        value = {"type": "AVRO", "schema": schema, "subject_name_strategy": strategy, "data": {}}
        [produced] = produce(world, "p3-strategies", {"value": value})
        assert produced["value"]["subject"] == subject
    [refused] = produce(
        world, "p3-strategies", {"value": {"subject_name_strategy": "RECORD_NAME", "data": {}}}
    )
    assert refused["error_code"] == 400


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"value": {"type": "BINARY", "data": "%"}}, 400),
        ({"value": {"type": "STRING", "data": 3}}, 400),
        ({"value": {"type": "XML", "data": "x"}}, 400),
        ({"value": {"type": "JSON", "schema_id": 1, "data": 1}}, 400),
        ({"value": {"type": "AVRO", "schema_id": 1, "data": 1}}, 400),
        ({"value": {"schema_id": 1, "schema_version": 1, "data": 1}}, 400),
        ({"value": {"schema_id": 99999, "data": 1}}, 422),
        ({"value": {"subject": "nothing", "data": 1}}, 422),
        ({"value": 3}, 400),
        ({"partition_id": -1}, 40402),
        ({"partition_id": 77, "value": {"type": "JSON", "data": 1}}, 40403),
        ({"partition_id": 1 << 31, "value": {"type": "JSON", "data": 1}}, 40402),
        ({"partition_id": 1 << 70, "value": {"type": "JSON", "data": 1}}, 40402),
        ({"value": {"type": [], "data": 1}}, 400),
        ({"value": {"type": {}, "schema": "{}", "data": 1}}, 400),
        ({"value": {"subject_name_strategy": [], "data": 1}}, 400),
        ({"value": {"subject": [], "data": 1}}, 400),
        ({"value": {"subject": "\ud800", "data": 1}}, 400),
        ({"value": {"schema_version": [], "data": 1}}, 400),
        ({"value": {"schema_version": 1 << 40, "data": 1}}, 400),
        ({"value": {"schema_id": [], "data": 1}}, 400),
        ({"value": {"schema_id": "9" * 5000, "data": 1}}, 400),
        ({"value": {"type": "AVRO", "schema": [], "data": 1}}, 400),
        ({"timestamp": "yesterday"}, 400),
        ({"timestamp": []}, 400),
        ({"timestamp": "1969-12-31T00:00:00Z"}, 400),
        ({"headers": [{"value": "x"}]}, 400),
        ({"headers": [{"name": "a\0b"}]}, 400),
        ({"headers": 5}, 400),
        (b'{"value":{"type":"JSON","data":1e999}}', 422),
    ],
)
def test_errors_of_records_are_results(world: World, record: Any, code: int) -> None:
    good = {"value": {"type": "JSON", "data": 1}}
    first, failed, last = produce(world, "p3-errors", good, record, good)
    assert (first["error_code"], failed["error_code"], last["error_code"]) == (200, code, 200)
    assert failed["message"]


def test_malformed_json_ends_the_stream(world: World, rest: Api) -> None:
    good = b'{"value":{"type":"JSON","data":1}}'
    for bad in (b"nonsense", b'{"value":', b"[1]", b'{"value":{"type":"JSON","data":tru}}', b'{"a":"\xff"}'):
        *produced, failed = produce(world, "p3-malformed", good, bad)
        assert [each["error_code"] for each in produced] == [200], bad
        assert failed["error_code"] == 400
    path = world.v3("/topics/p3-malformed/records")
    assert rest("POST", path, b"").error == (422, 42206)
    assert rest("POST", path, good, "text/plain").error == (415, 415)
    assert rest("POST", "/v3/clusters/other/topics/t/records", good).error == (404, 404)


def test_results_arrive_while_records_are_being_sent(world: World, rest: Api) -> None:
    with open_request(rest, world.v3("/topics/p3-stream/records")) as request:
        for number in range(3):
            record = json.dumps({"value": {"type": "JSON", "data": number}}).encode()
            # A record arrives in two pieces; its result arrives before the next record is sent.
            request.send(record[:10])
            request.send(record[10:])
            if number == 0:
                assert request.head() == 200
            [result] = results(request.chunk())
            assert (result["error_code"], result["offset"]) == (200, number)
        request.send(b'{"value":{"type":"BINARY","data":"?"}}')
        [failed] = results(request.chunk())
        assert failed["error_code"] == 400
        request.send(b'{"value":{"type":"JSON","data":3}}\n' * 2500)
        many = 0
        while many < 2500:
            many += len(results(request.chunk()))
        request.end()
        assert request.chunk() == b""
    assert len(stored(world, "p3-stream")) == 2503


def test_records_that_are_not_valid_do_not_end_the_stream(world: World, rest: Api) -> None:
    good = b'{"value":{"type":"JSON","data":1}}'
    with open_request(rest, world.v3("/topics/p3-open/records")) as request:
        request.send(b'{"partition_id":2147483648,"value":{"type":"JSON","data":1}}' + good)
        assert request.head() == 200
        assert [each["error_code"] for each in results(request.chunk())] == [40402, 200]
        request.send(b'{"value":{"type":[]}}' + good)
        assert [each["error_code"] for each in results(request.chunk())] == [400, 200]
        request.end()
        assert request.chunk() == b""


def test_many_values_without_newlines(world: World, rest: Api) -> None:
    with open_request(rest, world.v3("/topics/p3-one-line/records")) as request:
        request.send(b"{}" * 30_000 + b"\n")
        assert request.head() == 200
        found = 0
        while found < 30_000:
            found += len(results(request.chunk()))
        request.end()
        assert request.chunk() == b""
    assert rest("GET", "/topics/p3-one-line/partitions/0/offsets").body["end_offset"] == 30_000


def test_a_client_that_leaves_ends_its_stream(world: World, rest: Api) -> None:
    with open_request(rest, world.v3("/topics/p3-left/records")) as request:
        request.send(b'{"value":{"type":"JSON","data":1}}{"value":')
        assert request.head() == 200
        assert results(request.chunk())[0]["error_code"] == 200
    assert stored(world, "p3-left") == [(None, b"1")]
    assert rest("GET", "/topics").status == 200


def test_batches(world: World, rest: Api) -> None:
    path = world.v3("/topics/p3-batch/records:batch")
    value = {"type": "JSON", "data": 1}
    entries = [
        {"id": "a", "value": value},
        {"id": "b", "partition_id": -1, "value": value},
        {"id": "c", "value": value},
    ]
    answer = rest("POST", path, {"entries": entries})
    assert answer.status == 207
    assert [(each["id"], each["offset"]) for each in answer.body["successes"]] == [("a", 0), ("c", 1)]
    assert answer.body["failures"] == [{"id": "b", "error_code": 40402, "message": "Partition not found."}]
    for bad in (
        [],
        [{"id": "a", "value": value}] * 2,
        [{"id": 1, "value": value}],
        [{"id": "!", "value": value}],
        [{"id": str(number), "value": value} for number in range(11)],
    ):
        assert rest("POST", path, {"entries": bad}).error == (422, 42208)
    assert rest("POST", path, b"").error == (422, 42208)
    assert rest("POST", path, {"entries": 3}).error == (400, 400)


def test_a_failed_batch_lets_the_topic_be_checked_again(world: World) -> None:
    """As after other requests; a topic that was deleted would be taken for one that exists for a minute."""
    assert asyncio.run(_known_after_batch(world, 0))
    assert not asyncio.run(_known_after_batch(world, 77))


async def _known_after_batch(world: World, partition: int) -> bool:
    settings = RestSettings.from_properties({"bootstrap.servers": world.bootstrap})
    proxy: Any = SimpleNamespace(settings=settings, schemas=SchemaFormats(None))
    clients = Clients(settings)
    entry = {"id": "a", "partition_id": partition, "value": {"type": "JSON", "data": 1}}

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps({"entries": [entry]}).encode()}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    params = {"cluster_id": world.cluster_id, "topic_name": "p3-known"}
    try:
        await clients.send("p3-known", [OutgoingRecord(None, b"1")])
        answer = await produce_batch(Request({"headers": []}, receive, send, params, proxy, clients))
        failures = json.loads(answer.body)["failures"]
        assert [each["error_code"] for each in failures] == ([40403] if partition else [])
        return clients.is_known("p3-known")
    finally:
        await clients.close()


def test_unknown_topics_are_refused_quickly() -> None:
    with (
        Cluster(config={"auto.create.topics.enable": False}) as cluster,
        rest_proxy(cluster.bootstrap_servers) as rest,
    ):
        id = rest("GET", "/v3/clusters").body["data"][0]["cluster_id"]
        record = {"value": {"type": "JSON", "data": 1}}
        answer = rest("POST", f"/v3/clusters/{id}/topics/missing/records", record)
        assert (answer.status, answer.body["error_code"]) == (200, 40403)
        v2 = rest("POST", "/topics/missing", {"records": [{"value": 1}]}, embedded("json"))
        assert v2.error == (404, 40401)
