"""Bad input: the right code and a clear message, and other clients are answered meanwhile."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from moldau.client.admin.client import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster
from tests.harness.registry.cycles import KINDS
from tests.harness.registry.cycles import request as cyclic
from tests.harness.registry.instances import CONTENT_TYPE, HOST, Instance, instances

#: A client that sends small requests meanwhile is answered within this time.
PATIENCE_S = 1.0
VERSIONS = "/subjects/s/versions"
NO_CHECKS = {"schema.compatibility.level": "NONE"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def registry(cluster: Cluster) -> Iterator[Instance]:
    settings = {
        "schema.compatibility.level": "FULL_TRANSITIVE",
        "http.request.max.bytes": "2000000",
        "idle.timeout.ms": "2000",
    }
    with instances(cluster.bootstrap_servers, 1, settings) as [instance]:
        assert instance.register("s", '"string"').status == 200
        yield instance
        assert instance.register("last", '"string"').json["id"] == 1
        assert "Traceback" not in instance.log


@contextmanager
def others_are_answered(registry: Instance, path: str = "/subjects/s/versions/1") -> Iterator[None]:
    """Another client asks all the time; none of its requests may wait long."""
    stop = threading.Event()
    waits: list[float] = []

    def ask() -> None:
        while not stop.is_set():
            begun = time.monotonic()
            assert registry.ask("GET", path).status == 200
            waits.append(time.monotonic() - begun)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert waits and max(waits) < PATIENCE_S


NOT_JSON = [b"{", b"nonsense", b'{"schema":', b"\xff\xfe", b'{"schema":"\xff"}', b"[" * 100_000, b'{"a":NaN}']


@pytest.mark.parametrize("body", NOT_JSON, ids=[str(each[:12]) for each in NOT_JSON])
def test_body_that_is_not_json(registry: Instance, body: bytes) -> None:
    answer = registry.ask("POST", VERSIONS, body)
    assert (answer.status, answer.json["error_code"]) == (400, 400)
    assert answer.json["message"]


INVALID = [
    ({"schema": "{"}, 42201),
    ({"schema": '{"type":"record"}'}, 42201),
    ({"schema": '"nothing"'}, 42201),
    ({"schema": '"string"', "schemaType": "XML"}, 42201),
    ({"schema": "message", "schemaType": "PROTOBUF"}, 42201),
    ({"schema": "{", "schemaType": "JSON"}, 42201),
    ({"schema": '{"type":7}', "schemaType": "JSON"}, 42201),
    ({"schema": '"string"', "references": [{"name": "a", "subject": "none", "version": 1}]}, 42201),
    ({"schema": '"string"', "references": [{"name": "a"}]}, 42201),
    ({"schema": '"string"', "references": 7}, 42201),
    ({"schema": {"type": "string"}}, 422),
    ({"schema": '"string"', "id": "one"}, 422),
    ({"schema": '"string"', "metadata": 7}, 42210),
    ([], 422),
    (None, 422),
]


@pytest.mark.parametrize(("body", "code"), INVALID, ids=[json.dumps(each[0])[:60] for each in INVALID])
def test_invalid_schemas_and_fields(registry: Instance, body: object, code: int) -> None:
    answer = registry.ask("POST", "/subjects/invalid/versions", json.dumps(body).encode())
    assert (answer.status, answer.json["error_code"]) == (422, code)
    assert answer.json["message"]
    assert registry.ask("GET", "/subjects/invalid/versions").status == 404


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", VERSIONS, {"Content-Type": "text/plain"}, 415),
        ("GET", "/subjects", {"Accept": "text/html"}, 406),
        ("GET", "/schemas/ids/one", {}, 404),
        ("GET", "/schemas/ids/99999999999999999999", {}, 404),
        ("GET", "/subjects/s/versions/0", {}, 422),
        ("GET", "/subjects/s/versions/99999999999999999999", {}, 422),
        ("GET", "/subjects?offset=x", {}, 404),
        ("GET", "/nowhere", {}, 404),
        ("PATCH", "/subjects", {}, 405),
        ("GET", "/subjects/%FF%FE/versions", {}, 404),
        ("POST", "/subjects/a%00b/versions", {}, 422),
        ("GET", "/subjects/" + "x" * 20_000 + "/versions", {}, 404),
    ],
)
def test_requests_that_are_refused(
    registry: Instance, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = registry.ask(method, path, {"schema": '"string"'} if method == "POST" else None, headers)
    assert answer.status == status
    assert answer.json["message"]


def test_bodies_are_bounded(registry: Instance) -> None:
    with others_are_answered(registry):
        answer = registry.ask("POST", VERSIONS, {"schema": '"string"', "doc": "x" * 3_000_000})
        assert (answer.status, answer.json["error_code"]) == (413, 413)


@pytest.mark.parametrize(
    ("schema_type", "text"),
    [
        ("AVRO", '{"type":"array","items":' * 50_000 + '"int"' + "}" * 50_000),
        ("AVRO", "[" * 200_000),
        ("JSON", '{"items":' * 50_000 + "{}" + "}" * 50_000),
        ("JSON", '{"allOf":[' * 50_000 + "{}" + "]}" * 50_000),
        ("PROTOBUF", 'syntax = "proto3";' + "message M {" * 20_000 + "}" * 20_000),
        ("PROTOBUF", 'syntax = "proto3"; option a = ' + "{a:" * 20_000),
    ],
    ids=["avro", "avro-brackets", "json", "json-all-of", "protobuf", "protobuf-option"],
)
def test_deep_nesting_is_refused(registry: Instance, schema_type: str, text: str) -> None:
    with others_are_answered(registry):
        answer = registry.register("deep", text, schemaType=schema_type)
        assert (answer.status, answer.json["error_code"]) == (422, 42201), answer.body[:300]


def combined(leaf: str) -> str:
    """A schema whose size doubles with each level, so that a comparison multiplies."""
    schema: object = {"type": leaf}
    for _ in range(9):
        schema = {"allOf": [schema, {"type": "object", "properties": {"a": schema}}]}
    return json.dumps(schema)


def test_complex_schemas_do_not_block_other_clients(registry: Instance) -> None:
    wide = {f"p{number}": {"type": "object", "properties": {"a": {}}} for number in range(1000)}
    messages = "".join(f"message M{number} {{ M{number // 2} a = 1; }}\n" for number in range(1000))
    with others_are_answered(registry):
        for text, status in ((combined("string"), 200), (combined("number"), 409)):
            assert registry.register("combined", text, schemaType="JSON").status == status
        for title in ("one", "two"):
            schema = {"type": "object", "title": title, "properties": wide}
            assert registry.register("wide", schema, schemaType="JSON").status == 200
        text = f'syntax = "proto3";\n{messages}'
        assert registry.register("messages", text, schemaType="PROTOBUF").status == 200
        # FORWARD of the level FULL_TRANSITIVE refuses a message that the old schema does not have.
        assert registry.register("messages", text + "message N {}", schemaType="PROTOBUF").status == 409


@pytest.mark.parametrize(
    ("schema", "status"),
    [
        ({"$ref": "#"}, 200),
        (
            {
                "$ref": "#/definitions/a",
                "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
            },
            200,
        ),
        ({"allOf": [{"$ref": "#"}]}, 200),
        ({"$ref": "#/nowhere"}, 422),
        ({"type": "string", "pattern": "^(a+)+$", "default": "a" * 50 + "b"}, 200),
        ({"type": "object", "patternProperties": {"(x|x)*y": {}}, "default": {"x" * 50: 1}}, 200),
        ({"type": "string", "pattern": "((((((a*)*)*)*)*)*)*b"}, 200),
    ],
    ids=["root", "mutual", "all-of", "nowhere", "default", "pattern-properties", "nested-stars"],
)
def test_loops_of_references_and_hostile_patterns_end(
    request: pytest.FixtureRequest, registry: Instance, schema: dict[str, object], status: int
) -> None:
    with others_are_answered(registry):
        for version in (schema, {"title": "again", **schema}):
            answer = registry.register(request.node.callspec.id, version, schemaType="JSON")
            assert answer.status == status, answer.body[:300]


def test_remote_references_are_never_fetched(registry: Instance) -> None:
    with socket.create_server((HOST, 0)) as server:
        url = f"http://{HOST}:{server.getsockname()[1]}/schema.json"
        for schema, status in (
            ({"$ref": url}, 422),
            ({"$schema": url, "type": "string"}, 200),
            ({"$id": url, "$ref": "other.json"}, 422),
        ):
            answer = registry.register("remote", schema, schemaType="JSON")
            assert (schema, answer.status) == (schema, status)
        # Nothing of the import is used, so it need not be known.
        proto = f'syntax = "proto3"; import "{url}";'
        assert registry.register("remote-proto", proto, schemaType="PROTOBUF").status == 200
        used = f"{proto} message M {{ Other o = 1; }}"
        assert registry.register("remote-used", used, schemaType="PROTOBUF").status == 422
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


#: Method, path, and the statuses of the types.
ASKED_OF_CYCLES = [
    ("GET", "/subjects/A/versions/1", (200, 200, 200)),
    ("GET", "/subjects/A/versions/1?format=resolved", (200, 200, 200)),
    ("GET", "/subjects/A/versions/1?format=serialized", (200, 200, 422)),
    ("GET", "/subjects/A/versions/1/referencedby", (200, 200, 200)),
    ("POST", "/subjects/A", (422, 200, 200)),
    ("POST", "/compatibility/subjects/A/versions?verbose=true", (200, 200, 200)),
]


@pytest.mark.parametrize("names", [("A", "A"), ("A", "B")], ids=["self", "mutual"])
@pytest.mark.parametrize(("number", "kind"), [*enumerate(KINDS)], ids=KINDS)
def test_imported_references_in_a_cycle(
    registry: Instance, number: int, kind: str, names: tuple[str, str]
) -> None:
    """An import may replace a version, and so close a cycle; Avro refuses it, as names are unique."""
    below = f"/contexts/.cycle-{kind}-{names[1]}"
    assert registry.ask("PUT", f"{below}/mode", {"mode": "IMPORT"}).status == 200
    first, other = names
    imports = [(first, {"schema": KINDS[kind].plain(first), "schemaType": kind}, 200)]
    if first != other:
        imports.append((other, cyclic(kind, other, first), 200))
    imports.append((first, cyclic(kind, first, other), 422 if kind == "AVRO" else 200))
    with others_are_answered(registry):
        for schema_id, (name, body, status) in enumerate(imports, 1):
            body = {**body, "id": schema_id, "version": 1}
            answer = registry.ask("POST", f"{below}/subjects/{name}/versions", body)
            assert answer.status == status, answer.body
        assert registry.ask("PUT", f"{below}/mode?force=true", {"mode": "READWRITE"}).status == 200
        for method, path, statuses in ASKED_OF_CYCLES:
            given = cyclic(kind, first, other) if method == "POST" else None
            answer = registry.ask(method, below + path, given)
            assert (path, answer.status) == (path, statuses[number]), answer.body[:300]
        is_referenced = kind != "AVRO" or first != other
        deleted = registry.ask("DELETE", f"{below}/subjects/A/versions/1")
        assert deleted.status == (422 if is_referenced else 200)


def test_truncated_bodies_and_slow_clients(registry: Instance) -> None:
    header = f"POST {VERSIONS} HTTP/1.1\r\nHost: x\r\nContent-Type: {CONTENT_TYPE['Content-Type']}\r\n"
    with others_are_answered(registry):
        with socket.create_connection((HOST, registry.port)) as truncated:
            truncated.sendall(f"{header}Content-Length: 100\r\n\r\n{{".encode())
        slow = [socket.create_connection((HOST, registry.port)) for _ in range(20)]
        try:
            for each in slow:
                each.sendall(b"GET / HTTP/1.1\r\nHo")
            for each in slow:
                each.settimeout(10)
                # A client that does not complete its request is disconnected.
                assert each.recv(1) == b""
        finally:
            for each in slow:
                each.close()
        with socket.create_connection((HOST, registry.port)) as garbage:
            garbage.sendall(b"\x16\x03\x01\x00garbage\r\n\r\n")
            garbage.settimeout(10)
            assert re.match(rb"HTTP/1.1 400|$", garbage.recv(100))


def test_ten_thousand_versions(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    with AdminClient(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("_many", 1, 1, configs={"cleanup.policy": "compact"})])
    for number in range(1, 10_001):
        key = f'{{"keytype":"SCHEMA","subject":"s","version":{number},"magic":1}}'
        text = f'{{"type":"enum","name":"E","doc":"{number}","symbols":["A"]}}'
        value = {"subject": "s", "version": number, "id": number, "schema": text, "deleted": False}
        producer.produce("_many", json.dumps(value), key)
    assert producer.flush(20) == 0
    settings = {"kafkastore.topic": "_many", "schema.registry.group.id": "many", **NO_CHECKS}
    with instances(cluster.bootstrap_servers, 1, settings) as [registry]:
        assert registry.register("t", '"string"').status == 200
        for number in range(50):
            text = f'{{"type":"enum","name":"E","doc":"s{number}","symbols":["A"]}}'
            assert registry.register("s", text).status == 200
        assert len(registry.ask("GET", "/subjects/s/versions?limit=20000").json) == 1000
        assert registry.ask("GET", "/subjects/s/versions?offset=10040").json == list(range(10_041, 10_051))
        assert registry.ask("GET", "/subjects/s/versions/latest").json["version"] == 10_050
        registry.ask("PUT", "/config/s", {"compatibility": "FULL_TRANSITIVE"})
        with others_are_answered(registry, "/subjects/t/versions/1"):
            assert (
                registry.register("s", '{"type":"enum","name":"E","symbols":["A"]}').json["version"] == 10_051
            )
        assert len(registry.ask("DELETE", "/subjects/s").json) == 10_051
        with others_are_answered(registry, "/subjects/t/versions/1"):
            assert len(registry.ask("DELETE", "/subjects/s?permanent=true").json) == 10_051
        assert registry.ask("GET", "/subjects?deleted=true").json == ["t"]
