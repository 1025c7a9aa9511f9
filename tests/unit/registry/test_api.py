"""The REST API: routing, content types, errors; and rules that the recorded exchanges do not show."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable
from types import FrameType

from tests.harness.registry.application import Answer
from tests.unit.registry.requests import TestRegistry, on_a_loop, record


@on_a_loop
async def test_records_are_byte_for_byte_those_of_confluents_registry() -> None:
    registry = await TestRegistry().start()
    await registry.register("s1", '"string"')
    await registry.ask("PUT", "/config", {"compatibility": "FULL"})
    await registry.ask("PUT", "/mode/ro", {"mode": "READONLY"})
    await registry.register(":.ctx:s", '"int"')
    await registry.ask("DELETE", "/subjects/s1")
    assert registry.log.records == [
        (
            b'{"keytype":"SCHEMA","subject":"s1","version":1,"magic":1}',
            b'{"subject":"s1","version":1,"id":1,"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"MODE","subject":"ro","magic":0}', b'{"subject":"ro","mode":"READONLY"}'),
        (
            b'{"keytype":"CONTEXT","tenant":"default","context":".ctx","magic":0}',
            b'{"tenant":"default","context":".ctx"}',
        ),
        (
            b'{"keytype":"SCHEMA","subject":":.ctx:s","version":1,"magic":1}',
            b'{"subject":":.ctx:s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
        ),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s1","magic":0}', b'{"subject":"s1","version":1}'),
    ]


@on_a_loop
async def test_an_imported_id_raises_the_next_one() -> None:
    registry = await TestRegistry().start()
    await registry.ask("PUT", "/mode/s", {"mode": "IMPORT"})
    imported = await registry.register("s", record("r", "a"), id=4711, version=7)
    assert (imported.json["id"], imported.json["version"]) == (4711, 7)
    assert (await registry.register("t", record("r", "b"))).json["id"] == 4712


@on_a_loop
async def test_a_version_that_is_imported_again_with_another_id_has_only_this_one() -> None:
    """Responses by id are cached as immutable, so an id never stands for two schemas."""
    registry = await TestRegistry().start()
    await registry.ask("PUT", "/mode", {"mode": "IMPORT"})
    await registry.register("i", '"string"', id=5, version=1)
    await registry.register("i", '"int"', id=6, version=1)
    for again in (registry, await TestRegistry(registry.log).start()):
        assert (await again.ask("GET", "/schemas/ids/5")).json["error_code"] == 40403
        assert (await again.ask("GET", "/schemas/ids/6")).json["schema"] == '"int"'
    for number in (2, 3):
        await registry.register("i", '"string"', id=5, version=number)
    await registry.register("j", '"string"', id=5, version=1)
    await registry.register("i", '"long"', id=7, version=3)
    uses = [{"subject": "i", "version": 2}, {"subject": "j", "version": 1}]
    found = (await registry.ask("GET", "/schemas/ids/5/versions")).json
    assert sorted(found, key=lambda each: str(each["subject"])) == uses
    await registry.register("i", '"long"', id=7, version=2)
    assert (await registry.ask("GET", "/schemas/ids/5/versions")).json == uses[1:]
    assert (await registry.ask("GET", "/schemas/ids/5")).json["schema"] == '"string"'


@on_a_loop
async def test_an_id_is_not_used_again_after_a_permanent_delete() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    await registry.ask("DELETE", "/subjects/s")
    await registry.ask("DELETE", "/subjects/s?permanent=true")
    again = await registry.register("s", record("r", "a"))
    assert (again.json["id"], again.json["version"]) == (2, 1)


@on_a_loop
async def test_subjects_with_slashes_and_other_characters() -> None:
    registry = await TestRegistry().start()
    await registry.register("a%2Fb%20%C3%A4", record("r", "a"))
    assert (await registry.ask("GET", "/subjects")).json == ["a/b ä"]
    assert (await registry.ask("GET", "/subjects/a%2Fb%20%C3%A4/versions/latest")).json["subject"] == "a/b ä"


@on_a_loop
async def test_media_types() -> None:
    registry = await TestRegistry().start()
    plain = await registry.ask("GET", "/subjects", headers={"accept": "application/json"})
    assert plain.headers[b"content-type"] == b"application/json"
    default = await registry.ask("GET", "/subjects")
    assert default.headers[b"content-type"] == b"application/vnd.schemaregistry.v1+json"
    assert (await registry.ask("GET", "/subjects", headers={"accept": "text/html"})).status == 406
    wrong = await registry.ask("POST", "/subjects/s", {"schema": "{}"}, {"content-type": "text/plain"})
    assert (wrong.status, wrong.json["error_code"]) == (415, 415)


@on_a_loop
async def test_unknown_paths_methods_and_bodies() -> None:
    registry = await TestRegistry().start()
    assert (await registry.ask("GET", "/nothing")).json == {
        "error_code": 404,
        "message": "HTTP 404 Not Found",
    }
    assert (await registry.ask("PUT", "/subjects")).status == 405
    assert (await registry.ask("GET", "/schemas/ids/x")).status == 404
    assert (await registry.ask("POST", "/subjects/s/versions", b"{not json")).status == 400
    assert (await registry.ask("POST", "/subjects/s/versions", b"[]")).status == 422
    assert (await registry.ask("POST", "/subjects/s/versions", b'{"schema": 5}')).status == 422
    assert (await registry.ask("HEAD", "/subjects")).body == b""


@on_a_loop
async def test_the_methods_of_a_path_are_not_an_error() -> None:
    registry = await TestRegistry().start()
    options = await registry.ask("OPTIONS", "/subjects")
    assert (options.status, options.body) == (200, b"")
    assert options.headers[b"allow"] == b"GET,HEAD,OPTIONS"
    assert (await registry.ask("OPTIONS", "/nothing")).status == 404


@on_a_loop
async def test_an_unknown_subject_is_compatible_with_everything() -> None:
    registry = await TestRegistry(compatibility_level="FULL").start()
    path = "/compatibility/subjects/none/versions/latest"
    assert (await registry.ask("POST", path, {"schema": '"int"'})).json == {"is_compatible": True}


@on_a_loop
async def test_a_known_schema_is_registered_again_in_read_only_mode() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    await registry.ask("PUT", "/mode", {"mode": "READONLY"})
    assert (await registry.register("s", record("r", "a"))).json["id"] == 1
    assert (await registry.register("s", record("r", "b"))).json["error_code"] == 42205


async def calls_of(work: Awaitable[Answer]) -> int:
    """Return how many functions a request calls, which is its cost independent of the machine."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        answer = await work
    finally:
        sys.setprofile(None)
    assert answer.status == 200
    return calls


@on_a_loop
async def test_the_cost_of_a_request_does_not_grow_with_the_versions_of_a_subject() -> None:
    registry = await TestRegistry(compatibility_level="BACKWARD").start()
    for subject, first, last in (("few", 1, 2), ("many", 2, 2002)):
        for schema_id in range(first, last):
            text = json.dumps({"type": "enum", "name": "E", "doc": f"{schema_id}", "symbols": ["A"]})
            number = schema_id - first + 1
            value = {"subject": subject, "version": number, "id": schema_id, "schema": text, "deleted": False}
            key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":{number},"magic":1}}'
            registry.log.write(key.encode(), json.dumps(value).encode())
    schema = {"type": "enum", "name": "E", "doc": "new", "symbols": ["A"]}
    for request in (
        lambda subject: registry.ask("GET", f"/subjects/{subject}/versions/latest"),
        lambda subject: registry.ask(
            "POST",
            f"/compatibility/subjects/{subject}/versions/latest",
            {"schema": json.dumps({**schema, "doc": subject})},
        ),
        lambda subject: registry.register(subject, {**schema, "doc": subject}),
    ):
        few, many = await calls_of(request("few")), await calls_of(request("many"))
        assert many < few + 100
    assert (await registry.ask("GET", "/subjects/many/versions/latest")).json["version"] == 2001


@on_a_loop
async def test_importing_a_lower_id_does_not_lower_the_next_one() -> None:
    registry = await TestRegistry().start()
    await registry.ask("PUT", "/mode/s", {"mode": "IMPORT"})
    await registry.register("s", record("r", "a"), id=50)
    await registry.register("s", record("r", "b"), id=3)
    assert (await registry.register("t", record("r", "c"))).json["id"] == 51


@on_a_loop
async def test_a_referenced_version_can_be_deleted_once_the_referring_schema_is_gone() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    user = {"type": "record", "name": "u", "fields": [{"name": "f", "type": "r"}]}
    await registry.register("u", user, references=[{"name": "r", "subject": "s", "version": 1}])
    assert (await registry.ask("GET", "/subjects/s/versions/1/referencedby")).json == [2]
    assert (await registry.ask("DELETE", "/subjects/s/versions/1")).json["error_code"] == 42206
    await registry.ask("DELETE", "/subjects/u")
    assert (await registry.ask("DELETE", "/subjects/s/versions/1")).json == 1
    assert (await registry.ask("DELETE", "/subjects/s/versions/1?permanent=true")).json["error_code"] == 42206
    await registry.ask("DELETE", "/subjects/u?permanent=true")
    assert (await registry.ask("DELETE", "/subjects/s/versions/1?permanent=true")).json == 1


@on_a_loop
async def test_json_of_a_wrong_type_is_refused_and_not_stored() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    await registry.ask("PUT", "/mode/i", {"mode": "IMPORT"})
    stored = len(registry.log.records)
    schema = '"string"'
    reference = b'{"schema":"\\"int\\"","references":[{"name":"r","subject":"s","version":%s}]}'
    tags = "/subjects/s/versions/1/tags"
    for method, path, body in (
        ("PUT", "/config/s", {"alias": 5}),
        ("PUT", "/config/s", {"compatibilityGroup": {}}),
        ("PUT", "/config/s", {"normalize": "x"}),
        ("PUT", "/config/s", {"defaultRuleSet": {"enableAt": 5}}),
        ("PUT", "/mode/s", {"mode": []}),
        ("POST", "/subjects/s/versions", {"schema": schema, "schemaTagsToAdd": 5}),
        ("POST", "/subjects/s/versions", {"schema": schema, "ruleSet": {"enableAt": 5}}),
        ("POST", "/subjects/s/versions", reference % b"1e400"),
        ("POST", "/subjects/s/versions", reference % b"1099511627776"),
        ("POST", "/subjects/i/versions", {"schema": schema, "id": 9, "version": 2**40}),
        ("POST", tags, {"tagsToAdd": 5}),
        ("POST", tags, {"newVersion": "x"}),
        ("POST", tags, {"rulesToRemove": 5}),
    ):
        assert (await registry.ask(method, path, body)).status == 422, (path, body)
    query = {"resourceId": "x", "associationTypes": 5}
    batch = await registry.ask("POST", "/associations:batchGet", {"requests": [query]})
    assert batch.json["results"][0]["error"]["error_code"] == 422
    assert len(registry.log.records) == stored
    beyond = await registry.ask("GET", "/subjects/s/versions?offset=100000000000000000000")
    assert beyond.json == []
