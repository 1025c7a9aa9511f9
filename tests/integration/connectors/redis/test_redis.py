"""The Redis connectors against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.pipelines.connect.connectors.redis.sink import RedisSinkConnector
from moldau.pipelines.connect.connectors.redis.streams import RedisStreamSourceConnector
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import INT64, OPTIONAL_STRING, STRING, array, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SinkRun, SourceRun
from tests.harness.databases.redis import RedisServer

VALUE = struct({"id": INT64, "name": OPTIONAL_STRING, "tags": array(STRING)})


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    found = RedisServer()
    yield found
    found.close()


@pytest.fixture
def client(server: RedisServer) -> Any:
    found = server.client()
    found.flushall()
    return found


def record(offset: int, value: Any, key: str | None = None, topic: str = "t") -> SinkRecord:
    return SinkRecord(
        topic=topic,
        partition=0,
        offset=offset,
        key_schema=None if key is None else STRING,
        key=key,
        value_schema=value.schema if isinstance(value, Struct) else None,
        value=value,
    )


def user(offset: int, name: str | None, key: str | None) -> SinkRecord:
    return record(offset, Struct(VALUE, id=offset, name=name, tags=["x"]), key)


def sink(server: RedisServer, *, tolerate: bool = False, **settings: str) -> SinkRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    fixed = {"redis.uri": server.uri, "redis.password": "secret"}
    return SinkRun(RedisSinkConnector(), {**fixed, **given}, tolerate=tolerate)


@pytest.mark.parametrize("transaction", ["false", "true"])
def test_hashes(server: RedisServer, client: Any, transaction: str) -> None:
    with sink(server, redis_multiexec_enabled=transaction, batch_size="2") as run:
        run.put([user(0, "a", "1"), user(1, "b", "2"), user(2, None, "1"), record(3, None, "2")])
    assert client.keys() == ["t:1"]
    assert client.hgetall("t:1") == {"id": "2", "tags": '["x"]'}


def test_values(server: RedisServer, client: Any) -> None:
    with sink(server, redis_command="SET", redis_key="", redis_key_ttl="100") as run:
        run.put([record(0, "text", "a"), record(1, {"n": 1}, "b"), record(2, b"\x01", "c")])
    assert (client.get("a"), client.get("b"), client.get("c")) == ("text", '{"n":1}', "\x01")
    assert 0 < client.ttl("a") <= 100


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("SADD", {"a", "c"}),
        ("ZADD", [("c", 3.0), ("a", 7.0)]),
        ("LPUSH", ["c", "a", "a"]),
        ("RPUSH", ["a", "a", "c"]),
    ],
)
def test_collections(server: RedisServer, client: Any, command: str, found: Any) -> None:
    records = [
        record(0, 1, "a"),
        record(1, 2, "b"),
        record(2, 7, "a"),
        record(3, 3, "c"),
        record(4, None, "b"),
    ]
    with sink(server, redis_command=command, redis_key="all-${topic}") as run:
        run.put(records)
    read = {
        "SADD": lambda: client.smembers("all-t"),
        "ZADD": lambda: client.zrange("all-t", 0, -1, withscores=True),
        "LPUSH": lambda: client.lrange("all-t", 0, -1),
        "RPUSH": lambda: client.lrange("all-t", 0, -1),
    }[command]()
    assert [tuple(each) for each in read] == found if command == "ZADD" else read == found


def test_streams_there_and_back(server: RedisServer, client: Any) -> None:
    with sink(server, redis_command="XADD", redis_key="entries") as run:
        run.put([record(offset, {"n": offset, "none": None}) for offset in range(5)])
    fixed = {"redis.uri": server.uri, "redis.password": "secret", "redis.stream.block": "50"}
    fixed |= {"redis.stream.name": "entries,more", "topic": "from-${stream}"}
    with SourceRun(RedisStreamSourceConnector(), fixed) as run:
        records = run.read(2)
        assert [each.value.get("body") for each in records] == [{"n": "0"}, {"n": "1"}]
        assert records[0].topic == "from-entries"
        assert records[0].key == records[0].value.get("id") == client.xrange("entries", count=1)[0][0]
        run.restart()
        client.xadd("more", {"m": "x"})
        found = [each.value.get("body") for each in run.read(4)]
        assert sorted(map(str, found)) == ["{'m': 'x'}", "{'n': '2'}", "{'n': '3'}", "{'n': '4'}"]
        assert run.poll() == []


def test_new_entries_only(server: RedisServer, client: Any) -> None:
    client.xadd("s", {"n": "old"})
    fixed = {"redis.uri": server.uri, "redis.password": "secret", "redis.stream.block": "50"}
    settings = {**fixed, "redis.stream.name": "s", "redis.stream.offset": "$"}
    with SourceRun(RedisStreamSourceConnector(), settings) as run:
        assert run.poll() == []
        client.xadd("s", {"n": "new"})
        assert run.read(1)[0].value.get("body") == {"n": "new"}


def test_refused_records_are_reported(server: RedisServer, client: Any) -> None:
    client.set("t:2", "text")
    client.set("taken", "text")
    with sink(server, redis_command="SADD", redis_key="taken", tolerate=True) as run:
        run.put([record(0, "x", "a")])
        assert "WRONGTYPE" in str(run.reports[0][1])
    with sink(server, tolerate=True) as run:
        run.put([record(0, "no struct", "1"), user(1, "b", None), user(2, "c", "3")])
        assert [each.offset for each, _ in run.reports] == [0, 1]
    assert client.hget("t:3", "name") == "c"
    with sink(server) as run, pytest.raises(ConnectError):
        run.put([record(0, "no struct", "1")])


def test_connectors_wait_for_a_server_that_is_away(client: Any, server: RedisServer) -> None:
    fixed = {"redis.uri": server.uri, "redis.password": "secret", "redis.stream.block": "50"}
    with (
        sink(server, redis_command="XADD", redis_key="s") as target,
        SourceRun(RedisStreamSourceConnector(), {**fixed, "redis.stream.name": "s"}) as source,
    ):
        target.put([record(0, {"n": 0})])
        assert len(source.read(1)) == 1
        server.stop()
        with pytest.raises(RetriableError):
            target.put([record(1, {"n": 1})], timeout_s=0)
        assert source.poll() == []
        server.start()
        target.put([record(1, {"n": 1})])
        assert source.read(1)[0].value.get("body") == {"n": "1"}


def test_wrong_configurations_are_refused() -> None:
    with pytest.raises(ConfigError, match="redis://"):
        SinkRun(RedisSinkConnector(), {"redis.uri": "http://x"})
    with pytest.raises(ConfigError, match="HSET, SET"):
        SinkRun(RedisSinkConnector(), {"redis.command": "FLUSHALL"})
    with pytest.raises(ConfigError, match="no default value"):
        SourceRun(RedisStreamSourceConnector(), {})
