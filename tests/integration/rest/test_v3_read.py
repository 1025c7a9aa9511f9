"""Reading with v3: of a topic, a partition, as a group member; resuming, commits, clients that leave."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.harness.rest_proxy import Api
from tests.harness.waiting import eventually
from tests.integration.rest.conftest import World
from tests.integration.rest.test_v2_produce import SCHEMAS
from tests.integration.rest.test_v3_produce import produce

HOUR_MS = 3_600_000


def json_record(data: Any, **other: Any) -> dict[str, Any]:
    return {"value": {"type": "JSON", "data": data}, **other}


def read(world: World, path: str, headers: dict[str, str] | None = None) -> list[Any]:
    """Read until the stream ends."""
    status, text, received = world.rest.raw("GET", world.v3(path), None, headers)
    assert status == 200, text
    assert {name.lower(): value for name, value in received.items()}["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in text.splitlines()]


def data(records: list[Any]) -> list[Any]:
    return [each["value"]["data"] for each in records]


class Stream:
    """A response that is read line by line while it is open."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response

    def line(self) -> Any:
        return json.loads(self._response.readline())


@contextmanager
def open_stream(world: World, path: str) -> Iterator[Stream]:
    connection, response = world.rest.open("GET", world.v3(path))
    try:
        assert response.status == 200
        yield Stream(response)
    finally:
        response.close()
        connection.close()


def members(world: World, group: str) -> int:
    answer = world.rest("GET", world.v3(f"/consumer-groups/{group}/consumers"))
    return len(answer.body["data"]) if answer.status == 200 else 0


def test_a_record_is_read_with_headers_timestamp_and_types(world: World) -> None:
    header = {"name": "h", "value": base64.b64encode(b"\xff").decode()}
    produce(
        world,
        "r3-record",
        {
            "key": {"type": "STRING", "data": "k"},
            "value": {"type": "JSON", "data": {"a": 1}},
            "headers": [header],
            "timestamp": "2024-01-01T00:00:00Z",
        },
    )
    assert read(world, "/topics/r3-record/records") == [
        {
            "topic_name": "r3-record",
            "partition_id": 0,
            "offset": 0,
            "timestamp": "2024-01-01T00:00:00Z",
            "timestamp_type": "CREATE_TIME",
            "headers": [header],
            "key": {"type": "STRING", "data": "k"},
            "value": {"type": "JSON", "data": {"a": 1}},
        }
    ]


def test_types_are_chosen_or_guessed(world: World) -> None:
    binary = base64.b64encode(b"\x00\xff\x80").decode()
    produce(
        world,
        "r3-types",
        {"value": {"type": "BINARY", "data": binary}},
        {"value": {"type": "STRING", "data": "text"}},
        json_record([1]),
        json_record(None),
    )
    guessed = [each["value"] for each in read(world, "/topics/r3-types/records")]
    assert guessed == [
        {"type": "BINARY", "data": binary},
        {"type": "STRING", "data": "text"},
        {"type": "JSON", "data": [1]},
        None,
    ]
    chosen = [each["value"] for each in read(world, "/topics/r3-types/records?value_type=json")]
    assert chosen[2] == {"type": "JSON", "data": [1]}
    # A record that is not of the type does not stop the stream.
    assert chosen[1]["type"] == "BINARY" and "not json" in chosen[1]["error"]
    assert world.rest("GET", world.v3("/topics/r3-types/records?value_type=xml")).error == (400, 400)


@pytest.mark.parametrize(
    ("format", "schema", "good", "bad", "shown"), SCHEMAS, ids=lambda each: str(each)[:10]
)
def test_records_with_a_schema_are_decoded(
    world: World, format: str, schema: str, good: Any, bad: Any, shown: Any
) -> None:
    value = {"type": format.upper(), "schema": schema, "data": good}
    [produced] = produce(world, f"r3-{format}", {"value": value})
    [record] = read(world, f"/topics/r3-{format}/records")
    id = produced["value"]["schema_id"]
    assert record["value"] == {"type": format.upper(), "schema_id": id, "data": shown}


def test_reads_by_offset_time_and_limit(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "r3-range", "partitions_count": 2})
    for number in range(6):
        time = f"2024-01-01T00:0{number}:00Z"
        produce(world, "r3-range", json_record(number, partition_id=number % 2, timestamp=time))
    topic, one = "/topics/r3-range/records", "/topics/r3-range/partitions/1/records"
    assert sorted(data(read(world, topic))) == [0, 1, 2, 3, 4, 5]
    assert data(read(world, one)) == [1, 3, 5]
    assert data(read(world, f"{one}?offset=1")) == [3, 5]
    assert data(read(world, f"{one}?offset=1&limit=1")) == [3]
    assert data(read(world, f"{one}?offset=3")) == []
    assert data(read(world, f"{one}?from=latest")) == []
    assert sorted(data(read(world, f"{topic}?offsets=0:2,1:3"))) == [4]
    assert sorted(data(read(world, f"{topic}?timestamp=2024-01-01T00:03:00Z"))) == [3, 4, 5]
    assert sorted(data(read(world, f"{topic}?timestamp=1704067380000"))) == [3, 4, 5]
    assert data(read(world, f"{topic}?timestamp=2030-01-01T00:00:00Z")) == []
    assert world.rest("GET", world.v3(f"{one}?offset=9")).error == (400, 40002)
    for query in ("offsets=7:1", "offsets=x", "from=middle", "timestamp=soon", "limit=0", "max_wait_ms=x"):
        assert world.rest("GET", world.v3(f"{topic}?{query}")).error == (400, 400), query
    assert world.rest("HEAD", world.v3(topic)).status == 405
    assert world.rest("GET", world.v3("/topics/r3-nothing/records")).error == (404, 40403)
    assert world.rest("GET", world.v3("/topics/r3-range/partitions/5/records")).error == (404, 404)


def test_a_read_ends_behind_the_markers_of_transactions(world: World) -> None:
    producer = Producer({"bootstrap.servers": world.bootstrap, "transactional.id": "r3"})
    producer.init_transactions(20)
    for outcome in ("committed", "aborted"):
        producer.begin_transaction()
        producer.produce("r3-transactions", json.dumps(outcome).encode())
        producer.flush(10)
        if outcome == "committed":
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    assert data(read(world, "/topics/r3-transactions/records")) == ["committed"]


def test_followed_topic_shows_new_records(world: World) -> None:
    produce(world, "r3-follow", json_record(0))
    with open_stream(world, "/topics/r3-follow/records?follow=true") as stream:
        assert stream.line()["value"]["data"] == 0
        for number in (1, 2):
            produce(world, "r3-follow", json_record(number))
            assert stream.line()["value"]["data"] == number
    query = "follow=true&from=latest&max_wait_ms=200"
    assert read(world, f"/topics/r3-follow/records?{query}") == []


def test_server_sent_events_resume_after_the_last_event(world: World) -> None:
    produce(world, "r3-events", *(json_record(number) for number in range(3)))
    path = world.v3("/topics/r3-events/records")
    headers = {"Accept": "text/event-stream"}
    _, text, received = world.rest.raw("GET", f"{path}?limit=2", None, headers)
    assert received["content-type"] == "text/event-stream"
    events = [
        dict(line.split(": ", 1) for line in each.splitlines())
        for each in text.decode().split("\n\n")
        if each
    ]
    assert [(each["event"], each["id"]) for each in events] == [("record", "0:1"), ("record", "0:2")]
    assert json.loads(events[1]["data"])["value"]["data"] == 1
    resumed = read(world, "/topics/r3-events/records", {"Last-Event-ID": events[-1]["id"]})
    assert data(resumed) == [2]


def test_group_member_reads_commits_and_resumes(world: World, rest: Api) -> None:
    produce(world, "r3-group", *(json_record(number) for number in range(4)))
    path = "/consumer-groups/r3-members/records?topics=r3-group"
    commit = world.v3("/consumer-groups/r3-members/offsets")
    with open_stream(world, path) as stream:
        lines = [stream.line() for _ in range(4)]
        assert data(lines) == [0, 1, 2, 3]
        assert members(world, "r3-members") == 1
        # The member that holds the partition commits; what was read but not committed is read again.
        assert rest("POST", commit, {"offsets": lines[:2]}).status == 204
    eventually(lambda: members(world, "r3-members") == 0, timeout=10, what="the member has left")
    again = read(world, f"{path}&limit=2")
    assert data(again) == [2, 3]
    eventually(lambda: members(world, "r3-members") == 0, timeout=10, what="the member has left")
    # Without members, the proxy commits by itself.
    assert rest("POST", commit, {"offsets": again}).status == 204
    assert read(world, f"{path}&max_wait_ms=1500") == []
    lag = rest("GET", world.v3("/consumer-groups/r3-members/lags/r3-group/partitions/0")).body
    assert (lag["current_offset"], lag["lag"]) == (4, 0)


def test_members_of_a_group_share_the_partitions(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "r3-shared", "partitions_count": 2})
    group = "/consumer-groups/r3-sharing"
    path = f"{group}/records?topics=r3-shared"

    def assignments() -> list[int]:
        consumers = rest("GET", world.v3(f"{group}/consumers")).body.get("data", [])
        links = [world.v3(f"{group}/consumers/{each['consumer_id']}/assignments") for each in consumers]
        return [len(rest("GET", link).body.get("data", [])) for link in links]

    with open_stream(world, path) as first, open_stream(world, path) as second:
        eventually(lambda: assignments() == [1, 1], timeout=30, what="a partition for each member")
        for partition in (0, 1):
            produce(world, "r3-shared", json_record(partition, partition_id=partition))
        read = [first.line(), second.line()]
        assert sorted(data(read)) == [0, 1]
        # Each commit is made by the member that holds the partition.
        assert rest("POST", world.v3(f"{group}/offsets"), {"offsets": read}).status == 204
    summary = rest("GET", world.v3(f"{group}/lag-summary")).body
    assert summary["total_lag"] == 0


def test_group_reads_a_pattern(world: World) -> None:
    produce(world, "r3-pattern-a", json_record("a"))
    produce(world, "r3-pattern-b", json_record("b"))
    path = "/consumer-groups/r3-patterns/records"
    assert sorted(data(read(world, f"{path}?pattern=r3-pattern-.*&limit=2"))) == ["a", "b"]
    assert world.rest("GET", world.v3(path)).error == (400, 400)
    assert world.rest("GET", world.v3(f"{path}?topics=a&from=x")).error == (400, 400)


def test_commits_that_no_member_can_make_are_refused(world: World, rest: Api) -> None:
    produce(world, "r3-refused", json_record(1))
    commit = world.v3("/consumer-groups/r3-refused/offsets")
    with open_stream(world, "/consumer-groups/r3-refused/records?topics=r3-refused") as stream:
        stream.line()
        other = {"topic_name": "r3-group", "partition_id": 0, "offset": 1}
        assert rest("POST", commit, {"offsets": [other]}).error == (409, 40903)
    for bad in ({}, {"offsets": []}, {"offsets": [{}]}, {"offsets": [{**other, "offset": -1}]}):
        assert rest("POST", commit, bad).error == (400, 400)
