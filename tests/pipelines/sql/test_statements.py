"""Windows, outer joins, late records, and pausing and replacing queries, over two streams."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.results import Rows
from tests.harness.clients.reading import messages
from tests.pipelines.sql.conftest import NewEngine, rows, run
from tests.pipelines.sql.test_page import holds

if TYPE_CHECKING:
    from moldau.pipelines.sql.engine import SqlEngine
    from moldau.testing import Cluster

pytestmark = pytest.mark.timeout(400)
MINUTE = 60_000
START = int(time.time() * 1000) // MINUTE * MINUTE - 60 * MINUTE
QUERIES = """
CREATE TABLE hops WITH (topic='hops_{0}') AS SELECT who, COUNT(*) AS n FROM clicks
  WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 30 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY who;
CREATE TABLE sessions WITH (topic='sessions_{0}') AS SELECT who, COUNT(*) AS n FROM clicks
  WINDOW SESSION (30 SECONDS) GROUP BY who;
CREATE TABLE finals WITH (topic='finals_{0}') AS SELECT who, COUNT(*) AS n FROM clicks
  WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 0 SECONDS) GROUP BY who HAVING COUNT(*) > 1 EMIT FINAL;
CREATE STREAM pages WITH (topic='pages_{0}') AS
  SELECT page, who, CASE WHEN page = 'a' THEN 1 ELSE 2 END AS kind FROM clicks PARTITION BY page;
CREATE TABLE pairs WITH (topic='pairs_{0}') AS SELECT who, page, COUNT(*) AS n FROM clicks GROUP BY who, page;
CREATE STREAM fulls WITH (topic='fulls_{0}') AS SELECT ROWKEY, c.page, v.what
  FROM clicks c FULL JOIN views v WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON c.who = v.who;
"""


def at(seconds: int) -> int:
    return START + seconds * 1000


def insert(engine: SqlEngine, stream: str, *records: tuple[str, str, int]) -> None:
    values = ", ".join(f"('{who}', '{what}', {at(seconds)})" for who, what, seconds in records)
    run(engine, f"INSERT INTO {stream} VALUES {values};")


def test_windows_joins_late_records_and_paused_queries(new_engine: NewEngine, broker: Cluster) -> None:
    unique, engine = uuid.uuid4().hex[:8], new_engine()
    run(
        engine,
        f"CREATE STREAM clicks (who VARCHAR KEY, page VARCHAR, at BIGINT)"
        f"  WITH (topic='clicks_{unique}', partitions=2, timestamp='at');"
        f"CREATE STREAM views (who VARCHAR KEY, what VARCHAR, at BIGINT)"
        f"  WITH (topic='views_{unique}', partitions=2, timestamp='at');",
    )
    insert(engine, "clicks", ("ann", "a", 0), ("ann", "b", 10), ("bob", "a", 20))
    insert(engine, "views", ("ann", "x", 5), ("eve", "y", 30))
    run(engine, QUERIES.format(unique))
    windows = [["ann", at(-30), 2], ["ann", at(0), 2], ["bob", at(-30), 1], ["bob", at(0), 1]]
    holds(engine, "SELECT who, WINDOWSTART, n FROM hops", windows)

    insert(engine, "clicks", ("zoe", "z", 600))
    insert(engine, "views", ("zoe", "z", 600))
    sessions = [["ann", at(0), at(10), 2], ["bob", at(20), at(20), 1]]
    holds(engine, "SELECT who, WINDOWSTART, WINDOWEND, n FROM sessions", sessions)
    holds(engine, "SELECT who, WINDOWSTART, n FROM finals", [["ann", at(0), 2]])
    holds(engine, "SELECT page, kind FROM pages", [["a", 1], ["b", 2], ["a", 1], ["z", 2]])
    joined = [["ann", "a", "x"], ["ann", "b", "x"], ["bob", "a", None], ["eve", None, "y"], ["zoe", "z", "z"]]
    holds(engine, "SELECT * FROM fulls", joined)
    assert rows(engine, "SELECT n FROM pairs WHERE who = 'ann' AND page = 'b'") == [[1]]
    assert rows(engine, f"SELECT n FROM hops WHERE who = 'bob' AND WINDOWSTART = {at(0)}") == [[1]]

    insert(engine, "clicks", ("ann", "late", 5))
    holds(engine, "SELECT n FROM pairs WHERE page = 'late' AND who = 'ann'", [[1]])
    _check_late(engine, broker, f"clicks_{unique}")
    assert sorted(rows(engine, "SELECT who, WINDOWSTART, n FROM hops WHERE who = 'ann'")) == windows[:2]
    _check_pauses(engine)
    _check_definitions(engine, unique)


def _check_late(engine: SqlEngine, broker: Cluster, topic: str) -> None:
    engine.catch_up()
    for sink in ("hops", "sessions", "finals", "fulls"):
        name = f"{engine.catalog_topic}-{sink}-late"
        (late,) = messages(broker.bootstrap_servers, name, 2)
        headers = dict(late.headers())
        assert (late.key(), b'"late"' in late.value(), late.timestamp()[1] > at(600)) == (b"ann", True, True)
        assert headers["__streams.late.topic"] == topic.encode()
        assert {"__streams.late.partition", "__streams.late.offset"} < set(headers)
    counts = {row[2]: row[5] for row in rows(engine, "SHOW QUERIES")}
    assert counts["pairs"] == counts["pages"] == 0
    assert all(counts[sink] > 0 for sink in ("hops", "sessions", "finals", "fulls"))
    (described,) = engine.execute("DESCRIBE hops EXTENDED;")
    assert isinstance(described, Rows)
    assert any(f"{engine.catalog_topic}-hops-late" in note for note in described.notes)


def _check_pauses(engine: SqlEngine) -> None:
    run(engine, "PAUSE ALL;")
    assert {row[1] for row in rows(engine, "SHOW QUERIES")} == {"PAUSED"}
    insert(engine, "clicks", ("ann", "paused", 601))
    query = next(query.id for query in engine.catalog.queries() if query.sink == "pages")
    run(engine, f"RESUME {query};")
    holds(engine, "SELECT COUNT(*) FROM pages WHERE page = 'paused'", [[1]])


def _check_definitions(engine: SqlEngine, unique: str) -> None:
    (again,) = run(engine, "CREATE STREAM IF NOT EXISTS pages AS SELECT who, page FROM clicks;")
    assert again == "Stream pages already exists."
    run(
        engine,
        f"CREATE OR REPLACE STREAM pages WITH (topic='pages_{unique}') AS "
        "SELECT page, who, 3 AS kind FROM clicks WHERE page = 'z' PARTITION BY page;",
    )
    holds(engine, "SELECT who FROM pages WHERE kind = 3", [["zoe"]])
    with pytest.raises(SqlError, match="TERMINATE"):
        run(engine, "DROP STREAM clicks;")
    run(engine, "TERMINATE ALL; DROP STREAM pages DELETE TOPIC; DROP TABLE IF EXISTS nothing;")
    run(engine, "DROP TABLE finals DELETE TOPIC;")
    extended = {row[0]: row[-2:] for row in rows(engine, "SHOW TABLES EXTENDED")}
    assert extended["pairs"] == ["who VARCHAR, page VARCHAR, n BIGINT", ""]
    (topics,) = run(engine, "SHOW TOPICS;")
    (all_topics,) = run(engine, "SHOW ALL TOPICS;")
    names, all_names = ({row[0] for row in found} for found in (topics, all_topics))
    assert {f"clicks_{unique}", f"hops_{unique}"} < names
    assert not {f"pages_{unique}", f"{engine.catalog_topic}-finals-late"} & all_names
    assert f"{engine.catalog_topic}-hops-late" in all_names
    assert engine.catalog_topic in all_names - names


def test_error_in_a_script_names_its_place_and_ends_the_script(new_engine: NewEngine, tmp_path: Path) -> None:
    engine, topic = new_engine(), f"t_{uuid.uuid4().hex[:8]}"
    script = tmp_path / "script.sql"
    script.write_text(
        f"CREATE STREAM s (id INT KEY, v VARCHAR)\n  WITH (topic='{topic}', partitions=1);\n"
        "SELECT id, vv\nFROM s;\nDROP STREAM s;\n"
    )
    with pytest.raises(SqlError) as caught:
        run(engine, f"SHOW STREAMS; RUN SCRIPT '{script}';")
    assert str(caught.value).startswith(f"{script}, line 3, column 12: Unknown column vv\n  SELECT id, vv\n")
    assert [row[0] for row in rows(engine, "SHOW STREAMS")] == ["s"], (
        "statements before the error were executed"
    )
