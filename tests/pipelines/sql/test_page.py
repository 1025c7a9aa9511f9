"""The statements of docs/SQL.md are executed, and their tables follow later changes."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest

from moldau.client import Consumer, Producer, TopicPartition
from tests.docs.markdown import ROOT, blocks
from tests.harness.waiting import eventually
from tests.pipelines.sql.conftest import NewEngine, rows, run

if TYPE_CHECKING:
    from moldau.pipelines.sql.engine import SqlEngine
    from moldau.testing import Cluster

#: Eight queries in one session are slow on a busy machine.
pytestmark = pytest.mark.timeout(400)
TOPICS = ("orders", "customers", "regions", "unreadable")
READERS = ("CSAS_BIG_1", "CTAS_SPENT_2", "CTAS_MINUTES_3", "CSAS_LOCATED_4")
SINKS = ("big", "spent", "minutes", "located", "managed", "per_region")


def holds(engine: SqlEngine, query: str, expected: list[list[object]]) -> None:
    """Wait until a pull query returns these rows, after the persistent queries have caught up."""
    last: list[list[object]] = []

    def same() -> bool:
        last[:] = rows(engine, query)
        return sorted(last, key=str) == sorted(expected, key=str)

    if not same():
        engine.catch_up()
        eventually(same, timeout=150, every=0.5, what=f"{query}: {expected}; last {last}")


def test_documented_statements_run_and_tables_follow_changes(new_engine: NewEngine, broker: Cluster) -> None:
    unique = uuid.uuid4().hex[:8]
    engine = new_engine()
    found = [block.text for block in blocks((ROOT / "docs" / "SQL.md").read_text(), "sql")]
    # The statements with a schema registry are run by `tests/pipelines/registry`.
    page = [text for text in found if "schema.registry.url" not in text]
    assert len(page) == 4
    for topic in TOPICS:
        page = [text.replace(f"topic='{topic}'", f"topic='{topic}_{unique}'") for text in page]
        page = [text.replace(f"PRINT {topic}", f"PRINT {topic}_{unique}") for text in page]
    for sink in SINKS:
        named = f" {sink} WITH (topic='{sink}_{unique}') AS SELECT"
        page = [text.replace(f" {sink} AS SELECT", named) for text in page]
    run(engine, page[0])

    pulled, pushed, one = run(engine, page[1])
    assert pulled == [[1, "ANN", "Prague", 10.5], [3, "ANN", None, 7.0]]
    assert sorted(pushed) == [[1, "ann"], [2, "bob"], [3, "ann"]]
    assert one == [["ann", "EU"]]

    run(engine, page[2])
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.send(f"orders_{unique}", b"not JSON", b"\0\0\0\1").result(10)
        producer.send(f"orders_{unique}", b'{"customer":"x","total":9,"at":1000}', b"no number").result(10)
    holds(engine, "SELECT id, total FROM big", [[1, 10.5], [3, 7.0]])
    holds(engine, "SELECT * FROM spent", [["ann", 2, 17.5, 3], ["bob", 1, 3.0, 2]])
    windows = [["ann", 0, 60_000, 1], ["ann", 60_000, 120_000, 1], ["bob", 0, 60_000, 1]]
    holds(engine, "SELECT * FROM minutes", windows)
    assert rows(engine, "SELECT n FROM minutes WHERE customer = 'ann' AND WINDOWSTART >= 60000") == [[1]]
    holds(engine, "SELECT id, region FROM located", [[1, "EU"], [2, "US"], [3, "EU"]])
    holds(engine, "SELECT * FROM managed", [["ann", "Zoe"], ["bob", "Max"], ["eve", "Zoe"]])
    holds(engine, "SELECT * FROM per_region", [["EU", 2], ["US", 1]])

    shown = run(engine, page[3])
    assert [row[0] for row in shown[0]] == ["big", "located", "orders"]
    assert {row[4] for row in shown[2] if row[2] in ("big", "spent")} == {2}, "records that could not be read"
    assert len(shown[4]) == 2
    assert "Spark SQL" in str(shown[5])
    assert _letters(broker, f"unreadable_{unique}") == {
        ("VALUE_CONVERTER", "format JSON", "invalid JSON for the schema"),
        ("KEY_CONVERTER", "format KAFKA", "not int as Kafka's serializers write it"),
    }

    run(engine, "INSERT INTO customers VALUES ('eve', 'US');")
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.send(f"customers_{unique}", None, b"bob").result(10)
    holds(engine, "SELECT * FROM managed", [["ann", "Zoe"], ["eve", "Max"]])
    holds(engine, "SELECT * FROM per_region", [["EU", 1], ["US", 1]])
    others = [query.id for query in engine.catalog.queries() if query.sink != "spent"]
    run(engine, "".join(f"TERMINATE {query};" for query in others))
    engine.close()

    later = new_engine()
    run(later, "INSERT INTO orders (id, customer, total, at) VALUES (4, 'ann', 1, 62000);")
    holds(later, "SELECT * FROM spent", [["ann", 3, 18.5, 4], ["bob", 1, 3.0, 2]])
    run(later, "TERMINATE ALL; DROP TABLE spent DELETE TOPIC;")
    assert rows(later, "SHOW QUERIES") == []


def _letters(broker: Cluster, topic: str) -> set[tuple[str, ...]]:
    """Return the errors of the records in a dead letter topic, from their headers."""
    found: set[tuple[str, ...]] = set()

    def read() -> bool:
        for record in consumer.poll(0.5):
            headers = {name: (value or b"").decode() for name, value in record.headers}
            names = ("stage", "class.name", "exception.message")
            found.add(tuple(headers[f"__connect.errors.{name}"] for name in names))
            assert headers["__connect.errors.connector.name"] in READERS
        return len(found) > 1

    with Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        eventually(read, timeout=150)
    return found


def test_written_records_are_readable_by_any_consumer(new_engine: NewEngine, broker: Cluster) -> None:
    topic = f"plain_{uuid.uuid4().hex[:8]}"
    engine = new_engine()
    run(
        engine,
        f"CREATE STREAM s (id BIGINT KEY, d DATE, m MAP<VARCHAR, INT>) WITH (topic='{topic}', partitions=1);"
        "INSERT INTO s (id, d, m, ROWTIME) VALUES (7, '1970-01-03', MAP('a' := 1), 5);",
    )
    with Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        (record,) = consumer.poll(30)
    assert record.key == (7).to_bytes(8, "big")
    assert json.loads(record.value) == {"d": 2, "m": {"a": 1}}
    assert record.timestamp == 5
