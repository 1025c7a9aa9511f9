"""The keys that a pull query selects."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.parse.dialect import spark_sql
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import CreateSource, Select
from moldau.pipelines.sql.run.lookups import selected_keys

DEFINITION = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR PRIMARY KEY, v INT) WITH (topic='t');"


def keys_of(where: str, definition: str = DEFINITION) -> list[dict[str, str]] | None:
    created, select = parse(f"{definition} SELECT * FROM t x WHERE {where};")
    assert isinstance(created, CreateSource)
    assert isinstance(select, Select)
    keys = selected_keys(select, Source("TABLE", "t", "t", created.columns, "KAFKA", "JSON"))
    return keys and [{name: spark_sql(value) for name, value in key.items()} for key in keys]


def test_conditions_on_all_key_columns_are_a_key_lookup() -> None:
    assert keys_of("a = 1 AND x.B = 'x' AND v > 3") == [{"a": "1", "b": "'x'"}]
    assert keys_of("'x' = b AND (a IN (1, -2))") == [{"b": "'x'", "a": "1"}, {"b": "'x'", "a": "-2"}]


@pytest.mark.parametrize(
    "where",
    ["a = 1", "a = 1 OR b = 'x'", "a = 1 AND b = v", "a > 1 AND b = 'x'", "a = 1 AND y.b = 'x'", "NOT a = 1"],
)
def test_other_conditions_read_the_whole_table(where: str) -> None:
    assert keys_of(where) is None
