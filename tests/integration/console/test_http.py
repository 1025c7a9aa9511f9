"""The console for scripts: the same URLs as JSON, refusals, read-only mode, several clusters, audit log."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import confluent_kafka
import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from tests.harness.rest_proxy import Api, service
from tests.harness.waiting import eventually

HTML = {"Accept": "text/html"}


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    # Some records have timestamps of 1970.
    unlimited = {"retention.ms": "-1"}
    with AdminClient(bootstrap) as admin:
        assert admin.create_topics([NewTopic(topic, partitions, 1, configs=unlimited)]) == {topic: None}


def test_every_page_is_json_under_the_same_url(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 2)
    assert console("GET", "/healthz").body == {"status": "ok", "clusters": {"default": None}}
    overview = console("GET", "/").body
    assert (overview["health"], overview["brokers"], overview["under_replicated"]) == ("Healthy", 1, 0)
    assert console("GET", f"/topics/{topic}").body["topic"]["partitions"] == 2
    listed = console("GET", f"/topics?q={topic}").body
    assert [each["name"] for each in listed["topics"]] == [topic]
    partitions = console("GET", f"/topics/{topic}/partitions").body["partitions"]
    assert [(each["partition"], each["start"], each["end"]) for each in partitions] == [(0, 0, 0), (1, 0, 0)]
    entries = console("GET", f"/topics/{topic}/configuration").body["configuration"]
    assert {"name", "value", "source", "documentation"} <= entries[0].keys()
    (broker,) = console("GET", "/brokers").body["brokers"]
    assert (broker["status"], broker["controller"]) == ("Online", True)
    for path in ("groups", "acls", "users", "quotas", "schemas", "connectors", "pipelines", "sql"):
        assert console("GET", f"/{path}").status == 200, path


def test_pages_offer_the_same_as_commands(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    status, body, _ = console.raw("GET", f"/topics/{topic}/partitions", headers=HTML)
    assert status == 200
    assert f"kafka-topics --bootstrap-server {bootstrap} --describe --topic {topic}".encode() in body
    assert b"curl -H" in body and b"AdminClient(" in body


def copied(console: Api, path: str) -> list[str]:
    """Return what a page offers to copy: command, curl line and Python."""
    page = console.raw("GET", path, headers=HTML)[1].decode()
    return [
        html.unescape(each) for each in re.findall(r'<pre tabindex="0">(.*?)</pre><button', page, re.DOTALL)
    ]


def test_what_pages_offer_to_copy_runs(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    group = f"group-{topic}"
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0})
    eventually(lambda: console("GET", f"/groups/{group}").status == 200, timeout=20)
    broker = console("GET", "/brokers").body["brokers"][0]["id"]
    paths = [
        "/",
        "/topics",
        "/groups",
        f"/groups/{group}",
        "/brokers",
        f"/brokers/{broker}",
        "/users",
        "/quotas",
    ]
    paths += [f"/topics/{topic}/{tab}" for tab in ("partitions", "configuration", "groups")]
    scripts, commands = [], []
    for path in paths:
        command, line, python = copied(console, path)
        assert line == f"curl -H 'Accept: application/json' http://127.0.0.1:{console.port}{path}"
        scripts.append(python)
        commands.append(command)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(scripts)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and topic in done.stdout and group in done.stdout, done.stderr
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for index in (3, 8):
        done = subprocess.run(
            ["bash", "-c", commands[index]],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, **tools},
        )
        assert done.returncode == 0 and topic in done.stdout, commands[index]


def test_every_page_offers_command_curl_and_python(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 60)
    messages = f"/topics/{topic}/messages"
    written = console("POST", messages, {"value": '{"n": 1}', "partition": 3})
    assert written.status == 201
    for path in (
        "/schemas",
        "/connectors",
        "/pipelines",
        "/sql",
        "/acls",
        messages,
        f"{messages}?filter=n&partition=3",
        f"{messages}/3/0",
    ):
        assert len(copied(console, path)) == 3 and all(copied(console, path)), path
    command, _, python = copied(console, f"{messages}?expression=value.n+%3D%3D+1&partition=3")
    script = run(sys.executable, "-c", python)
    assert script.count("'offset': 0") == 1
    assert command.startswith("# ") and '{"n": 1}' in run("bash", "-c", command.replace("10000", "3000"))


def run(*command: str) -> str:
    """Return what a copied command prints; Kafka's tools are those of this installation."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PATH": tools}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "path", ["/nope", "/topics/nope", "/topics/nope/partitions", "/groups/nope", "/brokers/77"]
)
def test_unknown_pages_are_a_real_404(console: Api, path: str) -> None:
    assert console("GET", path).status == 404
    status, body, _ = console.raw("GET", path, headers=HTML)
    assert status == 404 and b"<h1>" in body


def test_records_are_written_read_and_searched(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    path = f"/topics/{topic}/messages"
    for number in range(3):
        fields = {"key": f"k{number}", "value": {"n": number}, "header_name": "h", "header_value": "x"}
        answer = console("POST", path, fields)
        assert (answer.status, answer.body["partition"], answer.body["offset"]) == (201, 0, number)
    rows = console("GET", f"{path}?start=beginning").body["messages"]
    assert [each["value"]["text"] for each in rows] == ['{"n": 0}', '{"n": 1}', '{"n": 2}']
    assert rows[0]["headers"] == [["h", "x"]]
    assert [each["offset"] for each in console("GET", path).body["messages"]] == [2, 1, 0]
    assert [each["offset"] for each in console("GET", f"{path}?start=offset&offset=1").body["messages"]] == [
        1,
        2,
    ]
    found = console("GET", f"{path}/search?expression=value.n+%3E+1").body
    assert [each["offset"] for each in found["messages"]] == [2]
    assert (found["done"], found["total"]) == (3, 3)
    assert [each["offset"] for each in console("GET", f"{path}/search?filter=K1").body["messages"]] == [1]
    assert console("GET", f"{path}/0/9").status == 404


def test_many_people_search_export_and_follow_at_a_time(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    path = f"/topics/{topic}/messages"
    lines = "\n".join(f"tea {number}" for number in range(200)).encode()
    console("POST", f"{path}/import", lines, kind="text/plain")
    with ExitStack() as stack:
        followers = [console.open("GET", f"{path}/follow", headers={"Accept": "*/*"}) for _ in range(5)]
        for connection, response in followers:
            stack.callback(connection.close)
            assert b"progress" in response.readline()
        with ThreadPoolExecutor(20) as pool:
            searches = pool.map(lambda _: console("GET", f"{path}?filter=tea&limit=500").body, range(20))
            exports = pool.map(
                lambda _: console.raw("GET", f"{path}/export?start=beginning")[1].count(b"\n"), range(20)
            )
            assert {each["found"] for each in searches} == set(exports) == {200}
        console("POST", path, {"value": "fresh"})
        for _, response in followers:
            read = iter(response.readline, b"")
            assert b"fresh" in next(line for line in read if line.startswith(b"data") and b"html" in line)


def test_the_url_of_a_filtered_page_is_json_with_what_it_finds(
    console: Api, bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic, 2)
    path = f"/topics/{topic}/messages"
    lines = [json.dumps({"value": f"tea {n}", "partition": n % 2}) for n in range(10)]
    console("POST", f"{path}/import", "\n".join([*lines, "coffee"]).encode(), kind="text/plain")
    found = console("GET", f"{path}?filter=tea&limit=3").body
    seen = [(each["partition"], each["offset"]) for each in found["messages"]]
    assert (found["topic"]["name"], len(seen), found["next"]) == (topic, 3, "0:3")
    while found["next"]:
        found = console("GET", f"{path}?filter=tea&limit=3&after={found['next']}").body
        seen += [(each["partition"], each["offset"]) for each in found["messages"]]
    assert sorted(set(seen)) == sorted(seen) and len(seen) == 10
    assert (found["done"], found["total"]) == (11, 11)
    assert console("GET", f"{path}?filter=tea&after=nonsense").status == 400


def test_values_of_any_size_are_searched_as_a_whole(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    path = f"/topics/{topic}/messages"
    large = json.dumps({"text": "ä" * 40_000, "n": 7}, ensure_ascii=False)
    assert console("POST", path, {"value": large}).status == 201
    (row,) = console("GET", path).body["messages"]
    assert (row["value"]["format"], row["value"]["cut"]) == ("text", True)
    (row,) = console("GET", f"{path}?expression=value.n+%3D%3D+7").body["messages"]
    assert row["value_size"] == len(large.encode())


def test_no_record_can_break_a_page(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    path = f"/topics/{topic}/messages"
    values = ['{"a": "\\ud800"}', '"\\udfff"', '{"a":' * 500 + "1" + "}" * 500, "[" * 3000, "\x00\x1b"]
    for number, value in enumerate(values):
        assert (
            console("POST", path, {"value": value, "header_name": "h", "header_value": value}).status == 201
        )
        for url in (path, f"{path}/0/{number}", f"{path}?expression=value.a+contains+%22x%22"):
            assert console("GET", url).status == 200, (url, value[:20])
            assert console.raw("GET", url, headers=HTML)[0] == 200, (url, value[:20])
    assert len(console.raw("GET", f"{path}/export?start=beginning")[1].splitlines()) == len(values)


def test_a_round_trip_through_a_file_is_exact(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 3)
    create(bootstrap, f"{topic}-copy", 3)
    records: list[dict[str, Any]] = [
        {"key": "k", "value": "text", "headers": [["h", "1"], ["h", "2"], ["n", None]]},
        {"key": "", "value": None, "headers": [["b", {"base64": "/wA="}]]},
        {"key_base64": "/w==", "value_base64": "AP8="},
        {"value": "x" * 300_000},
        {"value": ""},
        {"key": None, "value": '{"a": "\\ud800"}'},
    ]
    for number, each in enumerate(records):
        each |= {"partition": number % 3, "timestamp": 1_700_000_000_000 + number}
    body = "\n".join(map(json.dumps, records)).encode()
    path = f"/topics/{topic}/messages"
    assert console("POST", f"{path}/import", body, kind="text/plain").body["records"] == len(records)

    def exported(name: str) -> list[str]:
        status, lines, headers = console.raw("GET", f"/topics/{name}/messages/export?start=beginning")
        names = {each.lower(): value for each, value in headers.items()}
        assert status == 200 and name in names["content-disposition"]
        return sorted(lines.decode().splitlines())

    lines = exported(topic)
    assert {each["timestamp"] for each in map(json.loads, lines)} == {each["timestamp"] for each in records}
    copied = console(
        "POST", f"/topics/{topic}-copy/messages/import", "\n".join(lines).encode(), kind="text/x"
    )
    assert copied.status == 201
    assert exported(f"{topic}-copy") == lines
    # A topic with fewer partitions takes them as new records.
    create(bootstrap, f"{topic}-one")
    path = f"/topics/{topic}-one/messages/import"
    refused = console("POST", path, body, kind="text/plain")
    assert refused.status == 400 and "Line 2" in refused.body["error"]
    assert console("POST", f"{path}?as=new", body, kind="text/plain").status == 201
    assert not {each["timestamp"] for each in map(json.loads, exported(f"{topic}-one"))} & set(
        range(1_700_000_000_000, 1_700_000_000_010)
    )


@pytest.mark.parametrize(
    "query", ["start=beginning&limit=2", "start=newest&limit=2&partition=1", "start=time&time=5"]
)
def test_the_copied_command_and_python_read_the_same_records(
    console: Api, bootstrap: str, topic: str, query: str
) -> None:
    create(bootstrap, topic, 2)
    path = f"/topics/{topic}/messages"
    lines = [json.dumps({"value": f"v{n}", "partition": 1, "timestamp": n + 1}) for n in range(6)]
    console("POST", f"{path}/import", "\n".join(lines).encode(), kind="text/plain")
    shown = [each["value"]["text"] for each in console("GET", f"{path}?{query}").body["messages"]]
    assert shown
    command, _, python = copied(console, f"{path}?{query}")
    assert "group" not in python
    limit = len(shown)
    script = re.sub(r"islice\(consumer, \d+\)", f"islice(consumer, {limit})", python)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert sorted(re.findall(r"b'(v\d)'", done.stdout)) == sorted(shown)
    command = command.replace("10000", "3000")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": tools}
    )
    assert sorted(done.stdout.split()) == sorted(shown), done.stderr


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("/topics", {"name": ""}, "Name is empty"),
        ("/topics", {"name": "a b"}, "a b"),
        ("/topics", {"name": "x", "partitions": "-3"}, "at least 1"),
        ("/topics", {"name": "x", "partitions": "9" * 30}, "whole number"),
        ("/topics", {"name": "x", "settings": "nonsense"}, "name=value"),
        ("/topics", {"name": "x", "settings": "no.such=1"}, "no.such"),
        ("/users", {"user": "u", "password": "", "mechanism": "SCRAM-SHA-256"}, "empty"),
        ("/users", {"user": "u", "password": "p", "mechanism": "MD5"}, "one of"),
        ("/quotas", {"user": "u", "key": "producer_byte_rate", "value": "nan"}, "number above 0"),
        ("/quotas", {"key": "producer_byte_rate", "value": "1"}, "Give a user"),
        ("/acls", {"principal": "alice"}, "TYPE:NAME"),
    ],
)
def test_bad_input_gets_a_clear_answer(console: Api, path: str, fields: dict[str, str], reason: str) -> None:
    answer = console("POST", path, fields)
    assert 400 <= answer.status < 500
    assert reason in answer.body["error"]


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
)
def test_foreign_hosts_and_origins_are_refused(console: Api, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/topics"), ("POST", "/topics")):
        assert console.raw(method, path, b"name=stolen", headers)[0] == 403


def test_responses_have_a_strict_policy(console: Api) -> None:
    for path in ("/", "/static/console.js", "/nope"):
        headers = {name.lower(): value for name, value in console.raw("GET", path, headers=HTML)[2].items()}
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    page = console.raw("GET", "/", headers=HTML)[1]
    assert b"<script>" not in page and b" onclick" not in page and b"style=" not in page
    assert b"http://" not in page.replace(b"http://127.0.0.1", b"") and b"https://" not in page


def test_static_files_stay_in_their_folder(console: Api) -> None:
    for path in ("/static/../service.py", "/static/%2e%2e/service.py", "/static/", "/static/nope.js"):
        assert console.raw("GET", path, headers=HTML)[0] == 404


def test_read_only_masked_and_audited(bootstrap: str, topic: str, tmp_path: Path) -> None:
    create(bootstrap, topic)
    audit = tmp_path / "audit.jsonl"
    with service("console", bootstrap, "--set", f"audit.file={audit}") as (port, _):
        writable = Api(port, {"Accept": "application/json"})
        value = '{"card": "4111", "n": 1}'
        assert writable("POST", f"/topics/{topic}/messages", {"value": value}).status == 201
        assert writable("POST", "/topics", {"name": ""}).status == 400
    first, second = map(json.loads, audit.read_text().splitlines())
    assert (first["action"], first["result"]) == (f"POST /topics/{topic}/messages", "done")
    assert second["result"] == "refused: Name is empty."
    assert "4111" not in audit.read_text()
    arguments = [
        "--read-only",
        "--set",
        "masking.fields=card",
        "--set",
        f"cluster.other.bootstrap.servers={bootstrap}",
    ]
    with service("console", bootstrap, *arguments) as (port, _):
        readonly = Api(port, {"Accept": "application/json"})
        actions = ("messages", "delete", "partitions", "configuration")
        for path in (
            "/topics",
            "/users",
            "/acls",
            "/connectors/preview",
            *(f"/topics/{topic}/{each}" for each in actions),
        ):
            answer = readonly("POST", path, {"name": topic})
            assert answer.status == 403 and "read-only" in answer.body["error"]
        assert b"Create topic" not in readonly.raw("GET", "/topics", headers=HTML)[1]
        (row,) = readonly("GET", f"/clusters/other/topics/{topic}/messages").body["messages"]
        assert row["value"]["text"] == '{"card": "••••", "n": 1}'
        assert readonly("GET", f"/topics/{topic}/messages/search?filter=4111").body["messages"] == []
        assert b"4111" not in readonly.raw("GET", f"/topics/{topic}/messages/export?start=beginning")[1]
        assert b"4111" not in readonly.raw("GET", f"/topics/{topic}/messages/0/0", headers=HTML)[1]
        assert readonly("GET", "/clusters/nope/topics").status == 404
        assert b'value="/clusters/other/"' in readonly.raw("GET", "/", headers=HTML)[1]


def test_changes_of_others_are_seen_within_seconds(console: Api, bootstrap: str, topic: str) -> None:
    assert console("GET", f"/topics/{topic}").status == 404
    create(bootstrap, topic)
    assert console("GET", f"/topics/{topic}").status == 200
    with AdminClient(bootstrap) as admin:
        admin.delete_topics([topic])
    eventually(lambda: console("GET", f"/topics/{topic}").status == 404, timeout=20)


def test_pipelines_of_a_state_folder(bootstrap: str, tmp_path: Path) -> None:
    query = {
        "query": "clean",
        "batch": 3,
        "rows": 120,
        "rows_per_second": 5.25,
        "lag": {"orders": {"0": 4, "1": 6}},
    }
    status = {"name": "clean", "state": "running", "updated_ms": 1, "queries": [query], "dead_letters": 2}
    for name, text in (("clean", json.dumps(status)), ("broken", "{"), ("empty", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status.json").write_text(text)
    with service("console", bootstrap, "--pipelines", str(tmp_path)) as (port, _):
        api = Api(port, {"Accept": "application/json"})
        (row,) = api("GET", "/pipelines").body["pipelines"]
        assert (row["name"], row["lag"], row["rows"], row["dead_letters"]) == ("clean", 10, 120, 2)
        (found,) = api("GET", "/pipelines/clean").body["queries"]
        assert (found["topics"], found["rows_per_second"]) == (["orders"], 5.2)
        assert b"orders" in api.raw("GET", "/pipelines/clean", headers=HTML)[1]
        assert api("POST", "/pipelines/clean/stop", {}).status == 200
        assert (tmp_path / "clean" / "stop").exists()
        for name in ("nope", "broken", "..", ".runs"):
            assert api("GET", f"/pipelines/{name}").status == 404
        assert api("POST", "/sql", {"statements": "SELECT 1;"}).status == 404


def test_long_lists_have_pages(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 250)
    group = f"group-{topic}"
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, each): 0 for each in range(250)})

    def offsets(page: int) -> list[int]:
        return [each["partition"] for each in console("GET", f"/groups/{group}?page={page}").body["offsets"]]

    eventually(lambda: console("GET", f"/groups/{group}").body.get("partitions") == 250, timeout=20)
    assert offsets(1) == list(range(200)) and offsets(2) == list(range(200, 250))
    first, second = (console("GET", f"/topics/{topic}/partitions?page={each}").body for each in (1, 2))
    assert [each["partition"] for each in second["partitions"]] == list(range(200, 250))
    assert (len(first["partitions"]), first["pages"], second["page"]) == (200, 2, 2)
    html = console.raw("GET", f"/topics/{topic}/partitions?page=2", headers=HTML)[1]
    assert b"Page 2 of 2" in html and html.count(b'class="cell leader"') == 51
    assert console("GET", f"/topics/{topic}/partitions?page=x").status == 400


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_shown_and_protect_their_group(
    console: Api, bootstrap: str, topic: str, protocol: str
) -> None:
    create(bootstrap, topic, 2)
    group = f"group-{topic}"
    eventually(lambda: console("GET", f"/topics/{topic}").status == 200, timeout=20)
    for number in range(4):
        assert console("POST", f"/topics/{topic}/messages", {"value": str(number)}).status == 201
    config = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "client.id": "reader",
    }
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.protocol": protocol, **config}
    )
    try:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.5), timeout=60)
        consumer.commit(
            offsets=[confluent_kafka.TopicPartition(topic, each, 0) for each in range(2)], asynchronous=False
        )

        def described() -> Any:
            found = console("GET", f"/groups/{group}").body
            return found if found.get("members") and found["members"][0]["partitions"] else None

        found = eventually(described, timeout=30)
        (member,) = found["members"]
        assert member["client_id"] == "reader"
        assert member["partitions"] == [[topic, 0], [topic, 1]]
        assert found["type"] == protocol.capitalize()
        assert eventually(lambda: console("GET", f"/groups/{group}").body["total_lag"] == 4, timeout=30)
        refused = console("POST", f"/groups/{group}/reset", {"to": "end"})
        assert refused.status == 409 and "members" in refused.body["error"]
        assert console("POST", f"/groups/{group}/delete", {"name": group}).status == 409
    finally:
        consumer.close()
    preview = console("POST", f"/groups/{group}/reset/preview", {"to": "end"}).body["offsets"]
    assert sum(each["new"] for each in preview) == 4

    def reset() -> bool:
        return bool(console("POST", f"/groups/{group}/reset", {"to": "end"}).status == 200)

    eventually(reset, timeout=30)
    assert console("GET", f"/groups/{group}").body["total_lag"] == 0
    assert console("POST", f"/groups/{group}/delete", {"name": group}).status == 200
    assert console("GET", f"/groups/{group}").status == 404


def test_names_with_any_characters_have_pages(console: Api, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    group = f'a/b <img src=x>?&#%41 "ü" {topic}'
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0})
    path = f"/groups/{quote(group, safe='')}"
    assert console("GET", path).body["group"] == group
    status, body, _ = console.raw("GET", path, headers=HTML)
    assert status == 200 and b"<img src=x>" not in body
    assert f'hx-get="{path}"'.encode() in body
    listed = console.raw("GET", f"/groups?q={topic}", headers=HTML)[1]
    assert quote(group, safe="").encode() in listed
    # Links to the same page are relative: a proxy may have another scheme.
    assert f'<a href="?q={topic}&amp;sort=lag&amp;page=1">'.encode() in listed
    assert console("POST", f"{path}/delete", {"name": group}).status == 200
