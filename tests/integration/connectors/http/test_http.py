"""The HTTP connectors against a real server, and real requests to the webhook source."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.pipelines.connect.connectors.http.sink import HttpSinkConnector
from moldau.pipelines.connect.connectors.http.source import HttpSourceConnector
from moldau.pipelines.connect.connectors.http.webhook import WebhookSourceConnector
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import INT64, STRING, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SinkRun, SourceRun
from tests.harness.databases.process import free_port
from tests.integration.connectors.http.server import Request, Server

VALUE = struct({"id": INT64, "name": STRING})
FAST = {"retry.backoff.ms": "1"}


def record(offset: int, value: Any = None, key: str | None = None) -> SinkRecord:
    schema = value.schema if isinstance(value, Struct) else None
    return SinkRecord(
        topic="orders",
        partition=0,
        offset=offset,
        key_schema=None if key is None else STRING,
        key=key,
        value_schema=schema,
        value=value,
    )


def order(offset: int, key: str | None = None) -> SinkRecord:
    return record(offset, Struct(VALUE, id=offset, name=f"n{offset}"), key)


def sink(url: str, *, tolerate: bool = False, **settings: str) -> SinkRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return SinkRun(HttpSinkConnector(), {"http.api.url": url, **FAST, **given}, tolerate=tolerate)


# The sink.


def test_records_become_requests() -> None:
    with Server(lambda _: (201, {})) as server:
        url = server.url + "/${topic}/${key}?a=b"
        settings = {"request_method": "put", "headers": "X-Team: a|Accept: text/plain"}
        with sink(url, **settings, connection_user="u", connection_password="p", auth_type="basic") as run:
            run.put([order(0, "k/1"), order(1, "k2")])
        first, second = server.requests
    assert (first.method, first.path, second.path) == ("PUT", "/orders/k%2F1", "/orders/k2")
    assert first.json == {"id": 0, "name": "n0"}
    assert first.headers["content-type"] == "application/json"
    assert first.headers["x-team"] == "a"
    assert first.headers["authorization"] == "Basic dTpw"
    assert first.headers["x-kafka-record"] == "orders+0+0"


def test_batches_end_where_the_url_changes() -> None:
    with Server(lambda _: (200, None)) as server:
        with sink(server.url + "/${key}", batch_max_size="3") as run:
            run.put([order(offset, "a" if offset < 4 else "b") for offset in range(6)])
        found = [(each.path, [entry["id"] for entry in each.json]) for each in server.requests]
    assert found == [("/a", [0, 1, 2]), ("/a", [3]), ("/b", [4, 5])]


def test_text_batches_have_prefix_separator_and_suffix() -> None:
    with Server(lambda _: (200, None)) as server:
        settings = {"request_body_format": "string", "batch_max_size": "2"}
        with sink(server.url, **settings, batch_prefix="<", batch_separator=";", batch_suffix=">") as run:
            run.put([record(0, "a"), record(1, "b"), record(2, "c")])
        assert [each.body for each in server.requests] == ["<a;b>", "<c>"]


def failing(statuses: list[int]) -> Callable[[Request], tuple[int, Any]]:
    return lambda _: (statuses.pop(0) if statuses else 200, {})


def test_failed_requests_are_repeated() -> None:
    with Server(failing([503, 429, 500])) as server, sink(server.url) as run:
        run.put([order(0), order(1)])
        assert list(run.flush().values()) == [2]
        assert [each.json["id"] for each in server.requests] == [0, 0, 0, 0, 1]


def test_a_record_that_was_sent_is_not_sent_again_with_the_rest() -> None:
    with Server(failing([200, 503, 503])) as server:
        with sink(server.url, max_retries="0") as run:
            with pytest.raises(RetriableError):
                run.put([order(0), order(1)], timeout_s=0)
            run.put([order(0), order(1)])
        assert [each.json["id"] for each in server.requests] == [0, 1, 1, 1]


def test_refused_records_are_reported() -> None:
    def answer(request: Request) -> tuple[int, Any]:
        return (422, {"reason": "bad"}) if request.json["id"] == 1 else (200, {})

    with Server(answer) as server:
        with sink(server.url, tolerate=True) as run:
            run.put([order(0), order(1), order(2)])
            [(refused, error)] = run.reports
            assert refused.offset == 1 and "422" in str(error) and "bad" in str(error)
        with sink(server.url) as run, pytest.raises(ConnectError):
            run.put([order(1)])
        with sink(server.url, behavior_on_error="log") as run:
            run.put([order(1)])


def test_records_without_value_delete() -> None:
    with Server(lambda _: (204, None)) as server:
        with sink(server.url + "/${key}", behavior_on_null_values="delete", batch_max_size="5") as run:
            run.put([order(0, "a"), record(1, None, "a"), order(2, "a")])
        assert [(each.method, each.path) for each in server.requests] == [
            ("POST", "/a"),
            ("DELETE", "/a"),
            ("POST", "/a"),
        ]


def test_tokens_are_requested_and_renewed() -> None:
    tokens = iter(["one", "two"])

    def answer(request: Request) -> tuple[int, Any]:
        if request.path == "/token":
            assert request.body == "grant_type=client_credentials&scope=write"
            return 200, {"access_token": next(tokens), "expires_in": 3600}
        return (401, {}) if request.headers["authorization"] == "Bearer one" else (200, {})

    with Server(answer) as server:
        settings = {"oauth2.token.url": f"{server.url}/token", "oauth2.client.id": "c"}
        settings |= {"oauth2.client.secret": "s", "oauth2.client.scope": "write", "auth.type": "OAUTH2"}
        with sink(f"{server.url}/x", **settings) as run:
            run.put([order(0)])
        assert server.requests[-1].headers["authorization"] == "Bearer two"


# The polling source.


def source(url: str, **settings: str) -> SourceRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    fixed = {"topic.name.pattern": "t-${entityName}", "request.interval.ms": "20", **FAST}
    return SourceRun(HttpSourceConnector(), {"url": url, **fixed, **given})


def test_the_offset_counts_entries() -> None:
    entries = [{"n": number} for number in range(5)]

    def answer(request: Request) -> tuple[int, Any]:
        first = int(request.query["from"])
        return 200, {"data": {"items": entries[first : first + 2]}}

    pointer = {"http_response_data_json_pointer": "/data/items"}
    with (
        Server(answer) as server,
        source(server.url, http_request_parameters="from=${offset}&x=1", **pointer) as run,
    ):
        records = run.read(3)
        assert [each.value["n"] for each in records] == [0, 1, 2]
        assert records[0].topic == "t-default"
        run.restart()
        assert [each.value["n"] for each in run.read(2)] == [3, 4]
        assert run.poll() == []
        entries.append({"n": 5})
        assert [each.value["n"] for each in run.read(1)] == [5]


def test_the_offset_is_a_field_of_the_last_entry() -> None:
    def answer(request: Request) -> tuple[int, Any]:
        after = int(request.path.rpartition("/")[2] or 0)
        return 200, [{"id": number} for number in (10, 20, 30) if number > after][:2]

    with Server(answer) as server:
        settings = {"http_offset_mode": "CHAINING", "http_offset_json_pointer": "/id"}
        with source(server.url + "/${entityName}/${offset}", entity_names="a,b", **settings) as run:
            records = run.read(6)
            assert sorted((each.topic, each.value["id"]) for each in records) == [
                (topic, number) for topic in ("t-a", "t-b") for number in (10, 20, 30)
            ]
            assert run.poll() == []
        assert {each.path for each in server.requests} >= {"/a/", "/a/20", "/b/30"}


def paged(pages: dict[str, tuple[list[int], str | None]]) -> Callable[[Request], tuple[int, Any]]:
    def answer(request: Request) -> tuple[int, Any]:
        items, following = pages[request.query.get("cursor", "")]
        return 200, {"items": items, "next": following}

    return answer


CURSOR = {
    "http_request_parameters": "cursor=${offset}",
    "http_response_data_json_pointer": "/items",
    "http_next_page_json_pointer": "/next",
}


def test_pages_are_followed_by_cursor_and_the_last_one_grows() -> None:
    pages: dict[str, tuple[list[int], str | None]] = {"": ([1, 2], "b"), "b": ([3], None)}
    with (
        Server(paged(pages)) as server,
        source(server.url, http_offset_mode="CURSOR_PAGINATION", **CURSOR) as run,
    ):
        assert [each.value for each in run.read(1)] == [1]
        run.restart()
        assert [each.value for each in run.read(2)] == [2, 3]
        assert run.poll() == []
        pages["b"] = ([3, 4], "c")
        pages["c"] = ([5], None)
        assert [each.value for each in run.read(2)] == [4, 5]
        assert run.offsets == [({"entityName": "default"}, {"offset": "c", "read": 1})]


def test_a_snapshot_begins_again_after_the_last_page() -> None:
    with (
        Server(paged({"": ([1, 2], "b"), "b": ([3], None)})) as server,
        source(server.url, http_offset_mode="SNAPSHOT_PAGINATION", **CURSOR) as run,
    ):
        assert [each.value for each in run.read(6)] == [1, 2, 3, 1, 2, 3]


def test_a_source_repeats_failed_requests_and_reports_refused_ones() -> None:
    statuses = [500, 200]
    with Server(lambda _: (statuses.pop(0) if statuses else 404, [1])) as server, source(server.url) as run:
        assert [each.value for each in run.read(1)] == [1]
        with pytest.raises(ConnectError, match="404"):
            run.read(1)


# The webhook source.


class Webhook:
    """A running webhook source that is polled by a thread, as by a worker."""

    def __init__(self, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.port = free_port()
        fixed = {"listener.port": str(self.port), "topic": "hooks", "listener.path": "/in"}
        self.run = SourceRun(WebhookSourceConnector(), {**fixed, **given})
        self.records: list[Any] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Webhook:
        self.run.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self.run.stop()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self.records += self.run.poll()

    def post(self, body: bytes, path: str = "/in", **headers: str) -> int:
        import httpx2

        given = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://127.0.0.1:{self.port}{path}"
        return int(httpx2.post(url, content=body, headers=given, timeout=30).status_code)


def test_a_request_is_answered_after_its_record_is_stored() -> None:
    with Webhook(key_json_pointer="/id", headers_include="X-Event") as hook:
        assert hook.post(b'{"id": 7, "a": [1]}', X_Event="push") == 200
        [record] = hook.records
        assert (record.topic, record.key, record.value) == ("hooks", "7", {"id": 7, "a": [1]})
        assert record.headers.last_with_name("X-Event").value == "push"
        assert hook.post(b"no json") == 400
        assert hook.post(b"{}", path="/other") == 404
        assert len(hook.records) == 1


def test_a_request_whose_record_is_not_stored_fails() -> None:
    hook = Webhook(response_timeout_ms="200")
    hook.run.start()
    try:
        assert hook.post(b"{}") == 503
    finally:
        hook.run.stop()


@pytest.fixture
def signed() -> Iterator[Webhook]:
    with Webhook(auth_type="SIGNATURE", signature_secret="secret", max_request_bytes="100") as hook:
        yield hook


def test_senders_are_authenticated(signed: Webhook) -> None:
    body = json.dumps({"a": 1}).encode()
    digest = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    assert signed.post(body) == 401
    assert signed.post(body, X_Hub_Signature_256="sha256=" + "0" * 64) == 401
    assert signed.post(body, X_Hub_Signature_256=f"sha256={digest}") == 200
    assert signed.post(b"x" * 101) == 413
    with Webhook(auth_type="BEARER", bearer_token="t", body_format="string") as hook:
        assert hook.post(b"x", Authorization="Bearer u") == 401
        assert hook.post(b"x", Authorization="Bearer t") == 200
        assert hook.records[0].value == "x"


def test_wrong_configurations_are_refused() -> None:
    for properties, message in (
        ({"http.api.url": "ftp://x"}, "http://"),
        ({"http.api.url": "http://x", "auth.type": "BASIC"}, "connection.user"),
        ({"http.api.url": "http://x", "retry.on.status.codes": "4xx"}, "neither a code nor a range"),
        ({"http.api.url": "http://x", "headers": "nonsense"}, "Name: value"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            SinkRun(HttpSinkConnector(), properties)
    with pytest.raises(ConfigError, match="CHAINING"):
        source("http://x", http_offset_mode="CHAINING")
    with pytest.raises(ConfigError, match="SIGNATURE"):
        Webhook(auth_type="SIGNATURE")
