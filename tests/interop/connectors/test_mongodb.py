"""The MongoDB connectors with a server that speaks MongoDB's protocol.

It is not MongoDB itself, which no package registry has. Of change streams it lacks the position of an empty
stream, so the source begins at a timestamp here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines.connect.connectors.mongodb.sink import MongoSinkConnector
from moldau.pipelines.connect.connectors.mongodb.source import MongoSourceConnector
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import INT64, OPTIONAL_STRING, STRING, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SinkRun, SourceRun
from tests.harness.databases.process import ServerProcess
from tests.interop import jars

pytestmark = pytest.mark.interop

VALUE = struct({"id": INT64, "name": OPTIONAL_STRING, "price": logical.decimal_schema(2)})
_SOURCE = Path(__file__).parents[1] / "java" / "MongoServerMain.java"


class MongoServer:
    def __init__(self) -> None:
        self._libs = jars.mongo_server_libs()
        self._classes = jars.compiled(_SOURCE, self._libs, "mongo-server")
        self._server = ServerProcess()
        self._folder = self._server.folder / "classes"
        shutil.copytree(self._classes, self._folder)
        for each in self._libs.glob("*.jar"):
            shutil.copy(each, self._folder)
        self.start()

    @property
    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self._server.port}/"

    def start(self) -> None:
        path = f"{self._folder}:{self._folder}/*"
        command = ["java", "-Xmx128m", "-cp", path, "MongoServerMain", str(self._server.port)]
        self._server.start(command, self._is_ready)

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        self._server.close()

    def client(self) -> Any:
        import pymongo

        return pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=500)

    def _is_ready(self) -> bool:
        import pymongo

        try:
            return bool(self.client().admin.command("ping"))
        except pymongo.errors.PyMongoError:
            return False


@pytest.fixture(scope="module")
def server() -> Iterator[MongoServer]:
    found = MongoServer()
    yield found
    found.close()


def sink(server: MongoServer, *, tolerate: bool = False, **settings: str) -> SinkRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    fixed = {"connection.uri": server.uri, "database": "shop"}
    return SinkRun(MongoSinkConnector(), {**fixed, **given}, tolerate=tolerate)


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


def documents(server: MongoServer, collection: str) -> list[dict[str, Any]]:
    return list(server.client().shop[collection].find().sort("_id"))


def test_documents_by_key_are_exactly_once(server: MongoServer) -> None:
    strategy = "com.mongodb.kafka.connect.sink.processor.id.strategy.ProvidedInKeyStrategy"
    records = [
        record(0, Struct(VALUE, id=1, name="a", price=Decimal("1.50")), '{"_id": 1}', "keys"),
        record(1, '{"n": {"$numberLong": "7"}}', '{"_id": 2}', "keys"),
        record(2, {"n": 8}, '{"_id": 1}', "keys"),
        record(3, None, '{"_id": 2}', "keys"),
    ]
    with sink(server, document_id_strategy=strategy, delete_on_null_values="true") as run:
        run.put(records[:2])
        [first, second] = documents(server, "keys")
        assert (first["_id"], first["name"], str(first["price"])) == (1, "a", "1.50")
        assert second == {"_id": 2, "n": 7}
        run.put(records)
        run.put(records)
    assert documents(server, "keys") == [{"_id": 1, "n": 8}]


def test_coordinates_and_fields_as_id(server: MongoServer) -> None:
    with sink(server, document_id_strategy="KafkaMetaDataStrategy") as run:
        run.put([record(5, {"n": 1}, None, "meta")] * 2)
    assert documents(server, "meta") == [{"_id": "t#0#5".replace("t", "meta", 1), "n": 1}]
    settings = {
        "document.id.strategy": "PartialValueStrategy",
        "document.id.strategy.partial.value.projection.list": "a",
        "writemodel.strategy": "UpdateOneTimestampsStrategy",
    }
    with sink(server, **settings) as run:
        run.put([record(0, {"a": 1, "b": 1}, None, "part"), record(1, {"a": 1, "c": 2}, None, "part")])
    [found] = documents(server, "part")
    assert {name: found[name] for name in ("_id", "a", "b", "c")} == {"_id": {"a": 1}, "a": 1, "b": 1, "c": 2}
    assert found["_modifiedTS"] >= found["_insertedTS"]


def test_refused_records_are_reported_and_the_others_written(server: MongoServer) -> None:
    settings = {
        "document.id.strategy": "ProvidedInValueStrategy",
        "writemodel.strategy": "InsertOneDefaultStrategy",
    }
    records = [record(offset, {"_id": offset % 3}, None, "twice") for offset in range(5)]
    with sink(server, tolerate=True, **settings) as run:
        run.put([*records, record(5, "no json", None, "twice"), record(6, {"_id": 9}, None, "twice")])
        assert sorted(each.offset for each, _ in run.reports) == [3, 4, 5]
    assert [each["_id"] for each in documents(server, "twice")] == [0, 1, 2, 9]
    with sink(server, **settings) as run, pytest.raises(ConnectError):
        run.put(records[:1])


def source(server: MongoServer, collection: str, **settings: str) -> SourceRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    fixed = {
        "connection.uri": server.uri,
        "database": "shop",
        "collection": collection,
        "topic.prefix": "mongo",
        "poll.await.time.ms": "100",
        "startup.mode": "timestamp",
        "startup.mode.timestamp.start.at.operation.time": "1",
    }
    return SourceRun(MongoSourceConnector(), {**fixed, **given})


def test_changes_are_followed_and_continued(server: MongoServer) -> None:
    users = server.client().shop.users
    users.insert_one({"_id": 1, "name": "a"})
    with source(server, "users") as run:
        [first] = run.read(1)
        assert first.topic == "mongo.shop.users"
        event = json.loads(first.value)
        assert (event["operationType"], event["fullDocument"]) == ("insert", {"_id": 1, "name": "a"})
        users.insert_many([{"_id": number} for number in range(2, 6)])
        assert json.loads(run.read(1)[0].value)["documentKey"] == {"_id": 2}
        run.restart()
        found = [json.loads(each.value)["documentKey"]["_id"] for each in run.read(3)]
        assert found == [3, 4, 5]
        users.delete_one({"_id": 1})
        assert json.loads(run.read(1)[0].value)["operationType"] == "delete"
        [(partition, offset)] = run.offsets
        assert partition == {"ns": f"{server.uri}shop.users"}
        assert "_data" in json.loads(offset["_id"])


def test_documents_alone_with_tombstones(server: MongoServer) -> None:
    things = server.client().shop.things
    things.insert_one({"_id": 1, "name": "a"})
    things.delete_one({"_id": 1})
    tombstones = {"publish_full_document_only_tombstone_on_delete": "true"}
    with source(server, "things", publish_full_document_only="true", **tombstones) as run:
        inserted, deleted = run.read(2)
    assert (json.loads(inserted.key), json.loads(inserted.value)) == ({"_id": 1}, {"_id": 1, "name": "a"})
    assert (json.loads(deleted.key), deleted.value) == ({"_id": 1}, None)


def test_the_sink_waits_for_a_server_that_is_away(server: MongoServer) -> None:
    with SinkRun(
        MongoSinkConnector(),
        {
            "connection.uri": f"{server.uri}?serverSelectionTimeoutMS=300",
            "database": "shop",
            "document.id.strategy": "KafkaMetaDataStrategy",
        },
    ) as run:
        run.put([record(0, {"n": 0}, None, "away")])
        server.stop()
        with pytest.raises(RetriableError):
            run.put([record(1, {"n": 1}, None, "away")], timeout_s=0)
        server.start()
        run.put([record(1, {"n": 1}, None, "away")], timeout_s=60)
    # This server keeps nothing over a restart.
    assert [each["n"] for each in documents(server, "away")] == [1]


def test_wrong_configurations_are_refused() -> None:
    fixed = {"connection.uri": "mongodb://x", "database": "d"}
    for properties, message in (
        ({"connection.uri": "http://secret"}, "mongodb://"),
        ({"document.id.strategy": "Nonsense"}, "BsonOidStrategy"),
        ({"document.id.strategy": "PartialKeyStrategy"}, "Required with"),
    ):
        with pytest.raises(ConfigError, match=message) as refused:
            SinkRun(MongoSinkConnector(), {**fixed, **properties})
        assert "secret" not in str(refused.value)
    with pytest.raises(ConfigError, match="array of stages"):
        SourceRun(MongoSourceConnector(), {**fixed, "pipeline": "{}"})
