"""Hostile and broken requests: the right code, and a proxy that works as before."""

from __future__ import annotations

import base64
import functools
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.rest_proxy import V2, Api, embedded, rest_proxy, service
from tests.harness.waiting import eventually
from tests.integration.rest.conftest import World

LIMIT = 100_000


@pytest.fixture(scope="module")
def small(world: World) -> Iterator[Api]:
    """A proxy with low limits."""
    limits = {"http_request_max_bytes": LIMIT, "consumer_instances_max": 3}
    with rest_proxy(world.bootstrap, **limits) as rest:
        yield rest


@pytest.fixture(autouse=True)
def unharmed(small: Api) -> Iterator[None]:
    yield
    answer = small("POST", "/topics/bad-input", {"records": [{"value": 1}]}, embedded("json"))
    assert answer.body["offsets"][0]["error_code"] is None


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join(
        [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]
    ).encode()


def exchange(api: Api, *pieces: bytes, read: bool = True, end: bool = False) -> bytes:
    """Send bytes, and the end of the stream if asked; return all until the proxy closes the connection."""
    with socket.create_connection(("127.0.0.1", api.port), timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if not read:
            return b""
        received = b""
        try:
            if end:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                received += piece
        except OSError:
            # A connection that is closed before all was read is reset, after the answer.
            pass
        return received


def test_large_bodies_are_refused(small: Api) -> None:
    kind = f"Content-Type: {embedded('json')}"
    start = head("POST", "/topics/t", kind, f"Content-Length: {LIMIT + 1}")
    announced = exchange(small, start, b" " * (LIMIT + 1))
    assert announced.startswith(b"HTTP/1.1 413")
    start = head("POST", "/topics/t", kind, "Transfer-Encoding: chunked")
    # The last bytes exceed the limit: a proxy that closes before all was sent would reset the connection.
    chunks = [b"%x\r\n%s\r\n" % (size, b" " * size) for size in (LIMIT // 2, LIMIT // 2, 10)]
    chunked = exchange(small, start, *chunks[:2], chunks[2] + b"0\r\n\r\n")
    assert chunked.startswith(b"HTTP/1.1 413")


def test_a_record_of_a_stream_is_bounded(small: Api) -> None:
    id = small("GET", "/v3/clusters").body["data"][0]["cluster_id"]
    request = head("POST", f"/v3/clusters/{id}/topics/t/records", "Transfer-Encoding: chunked")
    start = b'{"value":{"type":"STRING","data":"'
    pieces = (start, *[b"x" * (LIMIT // 4)] * 4)
    chunks = [b"%x\r\n%s\r\n" % (len(each), each) for each in pieces]
    answer = exchange(small, request, *chunks[:-1], chunks[-1] + b"0\r\n\r\n")
    assert b"larger than" in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        head("GET", "/topics", "X: " + "y" * 200_000),
        head("POST", "/topics/t", "Content-Length: ten"),
        head("POST", "/topics/t", "Transfer-Encoding: chunked") + b"zz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"",
    ],
)
def test_requests_that_are_not_http(small: Api, request_bytes: bytes) -> None:
    answer = exchange(small, request_bytes, end=True)
    assert answer == b"" or answer.split()[1] in (b"400", b"431")


def test_truncated_bodies_write_nothing(small: Api) -> None:
    body = json.dumps({"records": [{"value": 1}]}).encode()
    headers = [f"Content-Type: {embedded('json')}", f"Content-Length: {len(body) + 10}"]
    exchange(small, head("POST", "/topics/bad-truncated", *headers), body, read=False)
    assert "bad-truncated" not in small("GET", "/topics").body


@pytest.mark.parametrize(
    "path",
    [
        "/topics/%00",
        "/topics/%ff%fe",
        "/topics/..",
        "/topics/" + "x" * 5000,
        "/topics/a/partitions/99999999999999999999",
        "/topics/a/partitions/-1",
        "/topics/a/partitions/x/offsets",
        "/v3/clusters/%2e%2e/topics",
        "/consumers/a/instances/%0d%0a/records",
        "/topics?" + "&".join(f"a{n}=1" for n in range(500)),
    ],
)
def test_odd_paths(small: Api, path: str) -> None:
    assert small("GET", path).status in (200, 400, 404)


def test_deeply_nested_json_is_refused_everywhere(world: World, small: Api) -> None:
    deep = b'{"a":' * 15_000 + b"1" + b"}" * 15_000
    id = world.cluster_id
    for path, kind in (
        ("/topics/t", embedded("json")),
        ("/consumers/g", V2),
        (f"/v3/clusters/{id}/topics", "application/json"),
        (f"/v3/clusters/{id}/acls:batch", "application/json"),
        (f"/v3/clusters/{id}/topics/t/records:batch", "application/json"),
    ):
        assert small("POST", path, deep, kind).error == (400, 400), path
    stream = small("POST", f"/v3/clusters/{id}/topics/t/records", deep)
    assert (stream.status, stream.body["error_code"]) == (200, 400)


def test_streams_are_bounded_and_freed(world: World, small: Api) -> None:
    path = f"/v3/clusters/{world.cluster_id}/topics/bad-input/records?follow=true"
    opened = [small.open("GET", path) for _ in range(3)]
    try:
        assert [response.status for _, response in opened] == [200, 200, 200]
        assert small("GET", path).error == (503, 50301)
        assert small("POST", "/consumers/g", {}, V2).error == (503, 50301)
    finally:
        for connection, response in opened:
            response.close()
            connection.close()
    eventually(lambda: small("POST", "/consumers/g", {"name": "x"}, V2).status in (200, 409), timeout=10)
    assert small("DELETE", "/consumers/g/instances/x").status == 204


def resident_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def test_a_reader_that_does_not_read_costs_little_memory(world: World, small: Api) -> None:
    with service("rest", world.bootstrap) as (port, process):
        rest = Api(port)
        value = "x" * 10_000
        for _ in range(40):
            body = {"records": [{"value": value}] * 100}
            assert rest("POST", "/topics/bad-slow", body, embedded("json")).status == 200
        before = resident_kb(process.pid)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(head("GET", f"/v3/clusters/{world.cluster_id}/topics/bad-slow/records"))
            assert slow.recv(15) == b"HTTP/1.1 200 OK"
            # The other requests are served meanwhile, and the topic of 40 MB is not collected in memory.
            for _ in range(20):
                assert rest("GET", "/topics/bad-slow/partitions/0/offsets").body["end_offset"] == 4000
            assert resident_kb(process.pid) - before < 25_000


def test_many_idle_instances_and_connections(small: Api, world: World) -> None:
    with rest_proxy(world.bootstrap) as rest:
        names = [rest("POST", "/consumers/idle", {}, V2).body["instance_id"] for _ in range(60)]
        sockets = [socket.create_connection(("127.0.0.1", rest.port)) for _ in range(100)]
        try:
            assert rest("GET", "/topics").status == 200
        finally:
            for each in sockets:
                each.close()
        for name in names:
            assert rest("DELETE", f"/consumers/idle/instances/{name}").status == 204


def test_concurrent_streams_of_one_topic(world: World, small: Api) -> None:
    """Streams write at the same time, each with its results in order."""
    path = f"/v3/clusters/{world.cluster_id}/topics/bad-concurrent/records"
    failures: list[str] = []

    def send(number: int) -> None:
        body = b"".join(
            json.dumps({"value": {"type": "JSON", "data": [number, each]}}).encode() for each in range(300)
        )
        _, text, _ = world.rest.raw("POST", path, body, {"Content-Type": "application/json"})
        offsets = [json.loads(line)["offset"] for line in text.splitlines()]
        if len(offsets) != 300 or offsets != sorted(offsets):
            failures.append(f"stream {number}: {offsets[:5]}")

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert world.rest("GET", "/topics/bad-concurrent/partitions/0/offsets").body["end_offset"] == 1800


def test_the_proxy_stops_although_the_cluster_does_not_answer() -> None:
    with Cluster() as cluster, service("rest", cluster.bootstrap_servers) as (port, process):
        rest = Api(port)
        rest("POST", "/topics/t", {"records": [{"value": 1}]}, embedded("json"))
        for group in range(6):
            config = {"name": "one", "format": "json", "auto.offset.reset": "earliest"}
            rest("POST", f"/consumers/{group}", config, V2)
            path = f"/consumers/{group}/instances/one"
            rest("POST", f"{path}/subscription", {"topics": ["t"]}, V2)
            read = functools.partial(rest, "GET", f"{path}/records?timeout=200", accept=embedded("json"))
            eventually(lambda read=read: read().body, timeout=20)
        cluster.nodes[0].pause()
        process.terminate()
        assert process.wait(20) == 0
        cluster.nodes[0].resume()


def test_schemas_that_would_stall_the_proxy(world: World) -> None:
    levels = {str(n): {"allOf": [{"$ref": f"#/definitions/{n + 1}"}] * 2} for n in range(30)}
    branching = {"$ref": "#/definitions/0", "definitions": {**levels, "30": {"type": "object"}}}
    backtracking = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    for topic, schema in (("bad-branching", branching), ("bad-backtracking", backtracking)):
        value = {"type": "JSONSCHEMA", "schema": json.dumps(schema), "data": {"a": "a" * 50 + "!"}}
        answer = world.rest("POST", world.v3(f"/topics/{topic}/records"), {"value": value})
        assert answer.body["error_code"] == 400, answer.body
        assert world.rest("GET", "/topics").status == 200


DEEP = 3000
BAD_SCHEMAS = {
    "avro-deep": ("AVRO", '{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP),
    "avro-union": ("AVRO", "[]"),
    "avro-number": ("AVRO", "3"),
    "avro-record": ("AVRO", '{"type":"record"}'),
    "json-deep": ("JSONSCHEMA", '{"items":' * DEEP + "{}" + "}" * DEEP),
    "json-list": ("JSONSCHEMA", "[1]"),
    "json-type": ("JSONSCHEMA", '{"type":7}'),
    "json-remote": ("JSONSCHEMA", '{"$ref":"http://127.0.0.1:9/x.json"}'),
    "proto-deep": ("PROTOBUF", 'syntax="proto3";' + "message M {" * DEEP + "}" * DEEP),
    "proto-text": ("PROTOBUF", "nonsense"),
    "proto-empty": ("PROTOBUF", 'syntax="proto3";'),
    "proto-import": ("PROTOBUF", 'syntax="proto3"; import "no.proto"; message A { no.B b = 1; }'),
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_bad_schemas_are_refused(world: World, name: str) -> None:
    kind, schema = BAD_SCHEMAS[name]
    value = {"type": kind, "schema": schema, "data": {}}
    answer = world.rest("POST", world.v3(f"/topics/bad-{name}/records"), {"value": value})
    assert answer.status == 200
    assert answer.body["error_code"] in (400, 422), answer.body
    v2 = {"value_schema": schema, "records": [{"value": {}}]}
    refused = world.rest("POST", f"/topics/bad-{name}", v2, embedded(kind.lower()))
    assert refused.status in (400, 422)


def test_records_of_any_bytes_can_be_read(world: World) -> None:
    """Bytes that name a schema but are not of it are shown as they are."""
    schema = (
        '{"type":"record","name":"R","fields":[{"name":"s","type":"string"},{"name":"d","type":"double"}]}'
    )
    value = {"type": "AVRO", "schema": schema, "data": {"s": "x", "d": 1.0}}
    produced = world.rest("POST", world.v3("/topics/bad-bytes/records"), {"value": value}).body
    frame = b"\0" + produced["value"]["schema_id"].to_bytes(4, "big")
    for bad in (b"", b"\xff", b"\xff" * 20, b"\x04\xff\xff", b"\x80" * 50):
        data = {"value": {"type": "BINARY", "data": base64.b64encode(frame + bad).decode()}}
        assert world.rest("POST", world.v3("/topics/bad-bytes/records"), data).body["error_code"] == 200
    _, text, _ = world.rest.raw("GET", world.v3("/topics/bad-bytes/records"))
    types = [json.loads(line)["value"]["type"] for line in text.splitlines()]
    assert types == ["AVRO", *["BINARY"] * 5]
