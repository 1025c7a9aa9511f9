"""Schemas, decoding and connectors: the console beside a schema registry and a Connect worker."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from tests.harness.browser import opened_page, violations, violations_of_dialogs
from tests.harness.rest_proxy import Api, service
from tests.harness.waiting import eventually
from tests.integration.console.test_stories import expect

AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "int"}, {"name": "note", "type": "string"}]}"""
PROTOBUF = 'syntax = "proto3"; message Order { int32 id = 1; string note = 2; }'
JSON_SCHEMA = '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'


@pytest.fixture(scope="module")
def console(bootstrap: str) -> Iterator[Api]:
    with (
        service("registry", bootstrap) as (registry, _),
        service("console", bootstrap, "--registry", f"http://localhost:{registry}") as (port, _),
    ):
        yield Api(port, {"Accept": "application/json"})


@pytest.mark.parametrize(
    ("kind", "schema", "value", "bad"),
    [
        ("AVRO", AVRO, '{"id": 7, "note": "tea"}', '{"id": "x"}'),
        ("PROTOBUF", PROTOBUF, '{"id": 7, "note": "tea"}', '{"unknown": 1}'),
        ("JSON", JSON_SCHEMA, '{"id": 7, "note": "tea"}', '{"id": "x"}'),
    ],
)
def test_values_are_written_and_decoded_by_their_schema(
    console: Api, bootstrap: str, topic: str, kind: str, schema: str, value: str, bad: str
) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    subject = f"{topic}-value"
    registered = console("POST", "/schemas", {"subject": subject, "type": kind, "schema": schema})
    assert registered.status == 201
    path = f"/topics/{topic}/messages"
    refused = console("POST", path, {"value": bad, "schema": subject})
    assert refused.status == 400 and "does not fit" in refused.body["error"]
    assert console("POST", path, {"value": value, "schema": subject}).status == 201
    (row,) = console("GET", path).body["messages"]
    assert (row["value"]["format"], row["value"]["schema_id"]) == (kind.lower(), registered.body["id"])
    assert row["value"]["text"] == value
    found = console("GET", f'{path}/search?expression=value.id+%3D%3D+7+and+value.note+contains+"ea"').body
    assert len(found["messages"]) == 1
    assert console("GET", f"{path}/search?filter=TEA").body["found"] == 1
    page = console("GET", f"/schemas/{subject}").body
    assert (page["type"], page["versions"], page["compatibility"]) == (kind, [1], "BACKWARD")


def test_each_cluster_has_a_registry_of_its_own(bootstrap: str, topic: str) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])

    def alone(name: str) -> list[str]:
        return [
            *("--set", f"kafkastore.topic=_{name}-{topic}"),
            *("--set", f"schema.registry.group.id={name}-{topic}"),
        ]

    with (
        service("registry", bootstrap, *alone("first")) as (registry, _),
        service("registry", bootstrap, *alone("second")) as (other, _),
        service(
            "console",
            bootstrap,
            *("--registry", f"http://localhost:{registry}"),
            *("--set", f"cluster.other.bootstrap.servers={bootstrap}"),
            *("--set", f"cluster.other.schema.registry.url=http://localhost:{other}"),
        ) as (port, _),
    ):
        api = Api(port, {"Accept": "application/json"})
        for base, field in (("", "first"), ("/clusters/other", "second")):
            fields = f'[{{"name": "{field}", "type": "int"}}]'
            schema = f'{{"type": "record", "name": "R", "fields": {fields}}}'
            subject = {"subject": f"{topic}-value", "type": "AVRO", "schema": schema}
            registered = api("POST", f"{base}/schemas", subject)
            assert (registered.status, registered.body["id"]) == (201, 1)
        # The bytes are the same; the schema with the id 1 is that of the cluster's registry.
        written = {"value": '{"second": 7}', "schema": f"{topic}-value"}
        path = f"/topics/{topic}/messages"
        assert api("POST", path, written).status == 400
        assert api("POST", f"/clusters/other{path}", written).status == 201
        shown = [api("GET", f"{base}{path}").body["messages"][0] for base in ("", "/clusters/other")]
        assert [each["value"]["text"] for each in shown] == ['{"first": 7}', '{"second": 7}']


def test_a_schema_is_named_by_a_header(console: Api, bootstrap: str, topic: str) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    fields = {"subject": f"{topic}-value", "type": "AVRO", "schema": AVRO}
    id: int = console("POST", "/schemas", fields).body["id"]
    name = base64.b64encode(b"\0" + id.to_bytes(4, "big")).decode()
    record = {
        "value": base64.b64encode(b"\x0e\x06tea").decode(),
        "value_format": "base64",
        "headers": json.dumps(["__value_schema_id", {"base64": name}]),
    }
    assert console("POST", f"/topics/{topic}/messages", record).status == 201
    (row,) = console("GET", f"/topics/{topic}/messages").body["messages"]
    assert (row["value"]["text"], row["value"]["format"]) == ('{"id": 7, "note": "tea"}', "avro")


UNION = """{"type": "record", "name": "Odd", "fields": [
    {"name": "note", "type": ["null", "string", "bytes"]}, {"name": "data", "type": "bytes"}]}"""


@pytest.mark.browser
@pytest.mark.parametrize(
    ("kind", "schema", "value", "shown"),
    [
        ("AVRO", UNION, '{"note": {"bytes": "\\u0000ÿ"}, "data": "\\u0001"}', '"bytes"'),
        ("PROTOBUF", PROTOBUF, '{"id": 7, "note": "tea"}', '"note": "tea"'),
        ("JSON", JSON_SCHEMA, '{  "id" : 7 }', '{  "id" : 7 }'),
        (None, "", "text", "text"),
    ],
)
def test_a_record_is_sent_again_as_it_is(
    console: Api,
    browser: Any,
    bootstrap: str,
    topic: str,
    kind: str | None,
    schema: str,
    value: str,
    shown: str,
) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    subject, path = f"{topic}-value", f"/topics/{topic}/messages"
    if kind is not None:
        console("POST", "/schemas", {"subject": subject, "type": kind, "schema": schema})
    headers = '["null", null]\n["binary", {"base64": "/wA="}]\nsource=shop'
    fields = {"value": value, "schema": subject if kind else "", "key_format": "empty", "headers": headers}
    assert console("POST", path, fields).status == 201
    assert console("POST", path, {"key": "k", "tombstone": True}).status == 201
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        for offset in (0, 1):
            page.goto(f"{path}/0/{offset}")
            page.get_by_role("button", name="Send again, edited").click()
            dialog = page.get_by_role("dialog")
            if offset == 0:
                field = dialog.get_by_role("textbox", name="Value", exact=True)
                assert shown in field.input_value()
                expect(dialog.get_by_label("Schema")).to_be_visible()
                assert violations(page) == []
            dialog.get_by_role("button", name="Send").click()
            expect(page.get_by_role("status")).to_contain_text(f"at offset {offset + 2}")
    lines = console.raw("GET", f"{path}/export?start=beginning")[1].splitlines()
    records = [json.loads(line) for line in lines]
    for each in records:
        del each["offset"], each["timestamp"]
    assert records[2:] == records[:2]
    assert records[0]["headers"] == [["null", None], ["binary", {"base64": "/wA="}], ["source", "shop"]]
    assert (records[0]["key"], records[1]["value"]) == ("", None)
    if kind is not None:
        for part in (f"/schemas/{subject}", "/schemas"):
            body = console.raw("GET", part, headers={"Accept": "text/html"})[1].decode()
            assert body.count("data-copy") == 3


def test_schemas_are_checked_and_deleted(console: Api, topic: str) -> None:
    path = f"/schemas/{topic}"
    console("POST", "/schemas", {"subject": topic, "type": "AVRO", "schema": AVRO})
    broken = AVRO.replace('"note", "type": "string"', '"other", "type": "string"')
    refused = console("POST", f"{path}/check", {"type": "AVRO", "schema": broken})
    assert refused.status == 409 and "not compatible" in refused.body["error"]
    assert console("POST", "/schemas", {"subject": topic, "type": "AVRO", "schema": broken}).status == 409
    assert console("POST", "/schemas", {"subject": topic, "type": "AVRO", "schema": "{"}).status == 422
    assert console("POST", f"{path}/compatibility", {"level": "NONE"}).status == 200
    assert console("POST", f"{path}/check", {"type": "AVRO", "schema": broken}).status == 200
    assert console("POST", f"{path}/delete", {"name": "x"}).status == 400
    assert console("POST", f"{path}/delete", {"name": topic}).status == 200
    assert console("GET", path).status == 404


@pytest.mark.browser
def test_a_schema_is_registered_in_the_browser(console: Api, browser: Any, topic: str) -> None:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto(f"/schemas?q=no-{topic}")
        expect(page.get_by_role("table", name="Schemas").locator("tbody tr")).to_have_count(0)
        page.goto("/schemas")
        page.get_by_role("button", name="Register schema").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Subject").fill(topic)
        dialog.get_by_label("Schema", exact=True).fill("not a schema")
        dialog.get_by_role("button", name="Register").click()
        expect(page.get_by_role("alert")).to_be_visible()
        dialog.get_by_label("Schema", exact=True).fill(AVRO)
        dialog.get_by_role("button", name="Register").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(topic)
        expect(page.get_by_role("status")).to_contain_text("is registered")
        for path in ("/schemas", f"/schemas/{topic}"):
            page.goto(path)
            assert (violations(page), violations_of_dialogs(page)) == ([], {})


@pytest.fixture(scope="module")
def connected(bootstrap: str) -> Iterator[Api]:
    threads = ["--set", "tasks.host=threads"]
    with (
        service("connect", bootstrap, *threads) as (connect, _),
        service("console", bootstrap, "--connect", f"http://localhost:{connect}") as (port, _),
    ):
        yield Api(port, {"Accept": "application/json"})


@pytest.mark.browser
def test_a_connector_is_created_controlled_and_deleted(
    connected: Api, browser: Any, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    with opened_page(browser, f"http://127.0.0.1:{connected.port}") as page:
        page.goto("/connectors")
        expect(page.get_by_role("table", name="Connectors")).to_be_visible()
        page.get_by_role("button", name="Create connector").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name", exact=True).fill(topic)
        plugin = dialog.get_by_label("Plug-in")
        plugin.select_option(
            value=next(
                each for each in plugin.locator("option").all_inner_texts() if "FileStreamSource" in each
            ).split()[0]
        )
        assert violations(page) == []
        dialog.get_by_role("button", name="Validate").click()
        expect(page.get_by_role("alert")).to_contain_text("topic")
        dialog.get_by_label("file", exact=True).fill(str(file))
        dialog.get_by_label("topic", exact=True).fill(topic)
        dialog.get_by_label("Settings").fill("errors.log.enable=true")
        dialog.get_by_role("button", name="Create").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(topic)
        expect(page.get_by_role("table", name="Tasks").get_by_text("RUNNING")).to_be_visible()
        assert (violations(page), violations_of_dialogs(page)) == ([], {})
        path = f"/topics/{topic}/messages?start=beginning"
        eventually(lambda: len(connected("GET", path).body["messages"]) == 2, timeout=60)
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("status")).to_contain_text("paused")
        expect(page.get_by_text("PAUSED").first).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("status")).to_contain_text("resumed")
        page.get_by_role("button", name="Delete connector").click()
        dialog.get_by_label("Connector name").fill(topic)
        dialog.get_by_role("button", name="Delete").click()
        expect(page.get_by_role("status")).to_contain_text("deleted")
        expect(page.get_by_role("link", name=topic)).to_have_count(0)


def test_secrets_of_connectors_are_masked_and_kept(
    connected: Api, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    (tmp_path / "lines.txt").write_text("")
    lines = [f"file={tmp_path / 'lines.txt'}", f"topic={topic}", "db.password=hunter2", "tasks.max=1"]
    source = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    fields = {"name": topic, "class": source, "settings": "\n".join(lines)}
    assert connected("POST", "/connectors", fields).status == 201
    path = f"/connectors/{topic}"
    shown = connected("GET", path).body["config"]
    assert (shown["db.password"], shown["topic"]) == ("••••", topic)
    page = connected.raw("GET", path, headers={"Accept": "text/html"})[1].decode()
    assert "hunter2" not in page
    worker = Api(int(re.search(r"curl http://localhost:(\d+)/", page)[1]))  # type: ignore[index]
    changed = {**shown, "batch.size": "7"}
    assert connected("POST", path, {"config": changed}).status == 200
    kept = worker("GET", f"{path}/config").body
    assert (kept["db.password"], kept["batch.size"]) == ("hunter2", "7")
    assert connected("POST", path, {"config": {**shown, "db.password": "new"}}).status == 200
    assert worker("GET", f"{path}/config").body["db.password"] == "new"
    refused = connected("POST", path, {"config": {**shown, "batch.size": "••••"}})
    assert refused.status == 400 and "batch.size" in refused.body["error"]
    assert connected("POST", f"{path}/delete", {"name": topic}).status == 200


def test_a_service_that_does_not_answer_is_named(bootstrap: str) -> None:
    arguments = ["--connect", "http://localhost:1", "--registry", "http://localhost:1"]
    with service("console", bootstrap, *arguments) as (port, _):
        api = Api(port, {"Accept": "application/json"})
        for path in ("/connectors", "/schemas"):
            answer = api("GET", path)
            assert answer.status == 502 and "localhost:1" in answer.body["error"]
        assert api("GET", "/topics").status == 200
