"""Names are resolved: timestamps in quotes, and ROWKEY."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.errors import SqlError
from tests.unit.pipelines.sql.example_catalog import compiled


def test_timestamps_in_quotes_and_rowkey() -> None:
    assert "unix_millis(to_timestamp('2020-01-01'))" in compiled(
        "SELECT ROWKEY, customer FROM orders WHERE ROWTIME >= '2020-01-01'"
    ).sql.replace("UNIX_MILLIS", "unix_millis").replace("TO_TIMESTAMP", "to_timestamp")
    plan = compiled("SELECT ROWKEY, customer FROM orders")
    assert plan.key_columns == ["ROWKEY"]
    joined = compiled(
        "SELECT ROWKEY, o.customer FROM orders o FULL JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id"
    )
    assert "coalesce(`o`.`id`, `p`.`order_id`) AS `ROWKEY`" in joined.sql
    assert joined.key_columns == ["ROWKEY"]
    with pytest.raises(SqlError, match="needs a key with one column"):
        compiled("SELECT ROWKEY FROM loose")
