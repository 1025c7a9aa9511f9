"""The search sink with real servers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.pipelines.connect.connectors.search.sink import ElasticsearchSinkConnector
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import INT64, OPTIONAL_STRING, STRING, array, map_of, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SinkRun
from tests.interop import jars
from tests.interop.connectors.servers import SearchServer

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

VALUE = struct({"id": INT64, "name": OPTIONAL_STRING})


@pytest.fixture(
    scope="module", params=[jars.OPENSEARCH, jars.ELASTICSEARCH], ids=["opensearch", "elasticsearch"]
)
def server(request: pytest.FixtureRequest) -> Iterator[SearchServer]:
    found = SearchServer(request.param)
    yield found
    found.close()


def sink(server: SearchServer, *, tolerate: bool = False, **settings: str) -> SinkRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return SinkRun(ElasticsearchSinkConnector(), {"connection.url": server.url, **given}, tolerate=tolerate)


def record(offset: int, value: Any, key: str | None, topic: str) -> SinkRecord:
    return SinkRecord(
        topic=topic,
        partition=0,
        offset=offset,
        key_schema=None if key is None else STRING,
        key=key,
        value_schema=value.schema if isinstance(value, Struct) else None,
        value=value,
        timestamp=1_704_067_200_000,
    )


def user(offset: int, name: str | None, key: str | None, topic: str) -> SinkRecord:
    return record(offset, Struct(VALUE, id=offset, name=name), key, topic)


def documents(server: SearchServer, index: str) -> dict[str, Any]:
    import httpx2

    httpx2.post(f"{server.url}/{index}/_refresh")
    found = httpx2.get(f"{server.url}/{index}/_search?size=1000").json()
    return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}


def test_documents_with_keys_are_exactly_once(server: SearchServer) -> None:
    topic = "Users"
    records = [user(0, "a", "1", topic), user(1, "b", "2", topic), user(2, "c", "1", topic)]
    records.append(record(3, None, "2", topic))
    with sink(server, behavior_on_null_values="delete", batch_size="2") as run:
        run.put(records)
        assert documents(server, "users") == {"1": {"id": 2, "name": "c"}}
        run.kill()
        run.start()
        # Late and repeated records replace nothing that is newer.
        run.put(records)
    assert documents(server, "users") == {"1": {"id": 2, "name": "c"}}


def test_coordinates_are_the_id_and_maps_need_no_schema(server: SearchServer) -> None:
    topic = "plain"
    records = [record(offset, {"n": offset, "deep": {"x": [1, 2]}}, None, topic) for offset in range(3)]
    with sink(server, key_ignore="true", schema_ignore="true") as run:
        run.put(records)
        run.put(records)
    assert documents(server, "plain") == {
        f"plain+0+{offset}": {"n": offset, "deep": {"x": [1, 2]}} for offset in range(3)
    }


def test_schemas_become_mappings(server: SearchServer) -> None:
    import httpx2

    schema = struct(
        {
            "id": INT64,
            "price": logical.decimal_schema(2),
            "at": logical.TIMESTAMP,
            "tags": array(STRING),
            "labels": map_of(STRING, INT64),
            "inner": VALUE,
        }
    )
    value = Struct(
        schema,
        id=1,
        price=Decimal("1.50"),
        at=datetime(2024, 1, 1, tzinfo=UTC),
        tags=["a"],
        labels={"x": 1},
        inner=Struct(VALUE, id=2),
    )
    with sink(server) as run:
        run.put([record(0, value, "k", "mapped")])
    assert documents(server, "mapped")["k"] == {
        "id": 1,
        "price": 1.5,
        "at": 1_704_067_200_000,
        "tags": ["a"],
        "labels": {"x": 1},
        "inner": {"id": 2, "name": None},
    }
    mapping = httpx2.get(f"{server.url}/mapped/_mapping").json()["mapped"]["mappings"]["properties"]
    assert {name: each.get("type") for name, each in mapping.items()} == {
        "id": "long",
        "price": "double",
        "at": "date",
        "tags": "text",
        "labels": None if "properties" in mapping["labels"] else "object",
        "inner": None,
    }


def test_upserts_change_the_fields_of_a_record_only(server: SearchServer) -> None:
    with sink(server, write_method="upsert", schema_ignore="true") as run:
        run.put([record(0, {"a": 1, "b": 1}, "k", "upserts"), record(1, {"b": 2}, "k", "upserts")])
    assert documents(server, "upserts") == {"k": {"a": 1, "b": 2}}


def test_malformed_documents_are_reported_and_the_others_written(server: SearchServer) -> None:
    good = [record(offset, {"n": offset}, f"{offset}", "malformed") for offset in range(3)]
    bad = record(3, {"n": "no number"}, "3", "malformed")
    with sink(server, tolerate=True, schema_ignore="true") as run:
        run.put(good[:1])
        run.put([bad, *good[1:], record(4, None, "4", "malformed"), record(5, {"n": 5}, None, "malformed")])
        assert [each.offset for each, _ in run.reports] == [4, 5, 3]
    assert sorted(documents(server, "malformed")) == ["0", "1", "2"]
    with sink(server, schema_ignore="true") as run, pytest.raises(ConnectError):
        run.put([bad])
    with sink(server, schema_ignore="true", behavior_on_malformed_documents="ignore") as run:
        run.put([bad])


def test_data_streams(server: SearchServer) -> None:
    import httpx2

    if server.name == "elasticsearch":
        pytest.skip("the distribution in Maven Central has no data streams")
    template = {"index_patterns": ["logs-*"], "data_stream": {}, "priority": 500}
    httpx2.put(f"{server.url}/_index_template/logs-tests", json=template).raise_for_status()
    settings = {"data_stream_type": "logs", "data_stream_dataset": "app", "key_ignore": "true"}
    with sink(server, **settings) as run:
        run.put([record(0, {"message": "m"}, None, "events")] * 2)
    found = documents(server, "logs-app-events")
    assert found == {"events+0+0": {"message": "m", "@timestamp": 1_704_067_200_000}}


def test_the_sink_waits_for_a_server_that_is_away(server: SearchServer) -> None:
    with sink(server, schema_ignore="true", max_retries="1", retry_backoff_ms="10") as run:
        run.put([record(0, {"n": 0}, "0", "away")])
        server.stop()
        with pytest.raises(RetriableError):
            run.put([record(1, {"n": 1}, "1", "away")], timeout_s=0)
        server.start()
        run.put([record(1, {"n": 1}, "1", "away")], timeout_s=120)
    assert sorted(documents(server, "away")) == ["0", "1"]


def test_wrong_configurations_are_refused() -> None:
    for properties, message in (
        ({"connection.url": "localhost:9200"}, "http://"),
        ({"connection.url": "http://x", "data.stream.type": "logs"}, "data.stream.dataset"),
        ({"connection.url": "http://x", "topic.to.external.resource.mapping": "a"}, "topic:index"),
    ):
        with pytest.raises(ConfigError, match=message):
            SinkRun(ElasticsearchSinkConnector(), properties)
