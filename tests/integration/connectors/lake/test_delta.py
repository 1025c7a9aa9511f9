"""Tables from topics with Delta Lake: rows, columns, keys, and what other engines read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from moldau.pipelines.connect.data.logical import OPTIONAL_TIMESTAMP, TIME
from moldau.pipelines.connect.data.schema import INT32, INT64, OPTIONAL_STRING, STRING, struct
from moldau.pipelines.connect.data.struct import Struct
from tests.harness.sink_tasks import Partitions, SinkRun
from tests.harness.tables import DeltaTables

EVENT = struct({"id": INT64, "name": OPTIONAL_STRING})
KEY = struct({"id": INT64})


@pytest.fixture
def lake(tmp_path: Path) -> DeltaTables:
    return DeltaTables(tmp_path)


def sink(config: dict[str, str], log: Partitions, **options: Any) -> SinkRun:
    return SinkRun(DeltaTables(Path()).connector(), config, log, **options).start()


def test_columns_are_added_and_rows_that_do_not_fit_reported(lake: DeltaTables) -> None:
    log = Partitions()
    narrow = struct({"id": INT32, "at": TIME})
    wide = struct({"id": INT64, "city": STRING})
    log.add(Struct(narrow, id=1, at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), narrow)
    log.add(Struct(wide, id=2, city="Prague"), wide)
    log.add(Struct(wide, id=2**40, city="Rome"), wide)
    run = sink(lake.config(), log).run()
    run.stop()
    assert lake.rows() == [{"id": 1, "at": 1000, "city": None}, {"id": 2, "at": None, "city": "Prague"}]
    # delta-rs does not widen columns.
    assert [record.original_offset for record, _ in run.reported] == [2]


def test_the_last_value_of_a_key_remains_and_a_tombstone_deletes_it(lake: DeltaTables) -> None:
    log = Partitions()
    config = lake.config() | {"delta.tables.upsert-mode-enabled": "true"}
    steps = [(1, "a"), (2, "b"), (3, "c"), (1, "d"), (2, None), (9, None)]
    for number, name in steps:
        value = None if name is None else Struct(EVENT, id=number, name=name)
        log.add(value, EVENT, key=Struct(KEY, id=number), key_schema=KEY)
    sink(config, log).run().stop()
    assert lake.rows() == [{"id": 1, "name": "d"}, {"id": 3, "name": "c"}]
    wide = struct({"id": INT64, "name": OPTIONAL_STRING, "city": OPTIONAL_STRING})
    log.add(Struct(wide, id=3, name="e", city="Rome"), wide, key=Struct(KEY, id=3), key_schema=KEY)
    log.add(None, key=Struct(KEY, id=1), key_schema=KEY)
    log.add(Struct(EVENT, id=4, name="f"), EVENT, key=Struct(KEY, id=4), key_schema=KEY)
    sink(config, log).run().stop()
    assert lake.rows() == [{"id": 3, "name": "e", "city": "Rome"}, {"id": 4, "name": "f", "city": None}]


def test_partitions_by_time_and_bucket(lake: DeltaTables) -> None:
    log = Partitions()
    schema = struct({"id": INT64, "at": OPTIONAL_TIMESTAMP})
    for number in range(10):
        log.add(Struct(schema, id=number, at=datetime(2026, 1, 1 + number % 2, 5, tzinfo=UTC)), schema)
    config = lake.config("${topic}") | {"delta.tables.default-partition-by": "days(at), bucket(id, 2)"}
    sink(config, log).run().stop()
    log.add(Struct(schema, id=10, at=None), schema)
    sink(config, log).run().stop()
    table = lake.table()
    assert table.metadata().partition_columns == ["at_day", "id_bucket"]
    rows = lake.rows()
    assert [row["id"] for row in rows] == list(range(11))
    assert [row["at_day"] for row in rows][:2] == [date(2026, 1, 1), date(2026, 1, 2)]


def test_duckdb_reads_the_table_and_history_shows_the_offsets(lake: DeltaTables) -> None:
    log = Partitions()
    for number in range(20):
        log.add({"id": number})
        if number % 10 == 9:
            sink(lake.config(), log).run().stop()
    rows = lake.table().to_pyarrow_table()
    assert rows.num_rows == 20
    assert duckdb.connect().execute("select sum(id) from rows").fetchone() == (190,)
    commits = lake.table().history()
    chosen = next(each for each in commits if each.get("kafka.connect.lake.offsets") == '{"events":{"0":10}}')
    table = lake.table()
    table.load_as_version(chosen["version"])
    assert table.count() == 10
