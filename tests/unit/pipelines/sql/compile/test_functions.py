"""ksqlDB functions are rewritten to Spark functions."""

from __future__ import annotations

import re

import pytest

from moldau.pipelines.sql.compile.function_tables import AGGREGATES, SAME, SCALARS, UNSUPPORTED
from moldau.pipelines.sql.compile.functions import rewritten
from moldau.pipelines.sql.parse.dialect import expression, spark_sql, tokenize
from tests.docs.markdown import ROOT


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("UCASE(LCASE(a))", "UPPER(LOWER(a))"),
        ("LEN(a) > 2", "LENGTH(a) > 2"),
        ("SPLIT(a, '.')", "SPLIT(a, CONCAT('\\\\Q', '.', '\\\\E'))"),
        ("CONCAT(a, 'it''s')", "CONCAT_WS('', a, 'it\\'s')"),
        ("SLICE(a, 2, b)", "SLICE(a, 2, b - 2 + 1)"),
        ("TIMESTAMPADD(HOURS, 1, t)", "TIMESTAMPADD(HOUR, 1, t)"),
        ("DATESUB(DAYS, 2, d)", "CAST(TIMESTAMPADD(DAY, -(2), d) AS DATE)"),
        ("FORMAT_TIMESTAMP(t, 'yyyy', 'CET')", "DATE_FORMAT(FROM_UTC_TIMESTAMP(t, 'CET'), 'yyyy')"),
        ("FROM_UNIXTIME(ROWTIME)", "TIMESTAMP_MILLIS(ROWTIME)"),
        ("EXTRACTJSONFIELD(a, '$.x')", "GET_JSON_OBJECT(a, '$.x')"),
        ("REGEXP_EXTRACT('a+', b)", "REGEXP_EXTRACT(b, 'a+', 0)"),
        ("STRUCT(a := 1, b := UCASE(c))", "NAMED_STRUCT('a', 1, 'b', UPPER(c))"),
        ("MAP('a' := 1, 'b' := 2)", "MAP('a', 1, 'b', 2)"),
        ("ARRAY[1, 2]", "ARRAY(1, 2)"),
        ("m['k']->x", "TRY_ELEMENT_AT(m, 'k').x"),
        ("TRANSFORM(a, x => UCASE(x->b[1]))", "TRANSFORM(a, x -> UPPER(TRY_ELEMENT_AT(x.b, 1)))"),
        ("REDUCE(a, 0, (s, x) => s + x)", "REDUCE(a, 0, (s, x) -> s + x)"),
        ("CAST(a AS BYTES)", "CAST(a AS BINARY)"),
        ("CAST(a AS MAP<VARCHAR, STRUCT<x TIME>>)", "CAST(a AS MAP<STRING, STRUCT<x: TIME>>)"),
        ("AS_VALUE(id)", "id"),
        ("COUNT_DISTINCT(a)", "APPROX_COUNT_DISTINCT(a)"),
        ("TOPK(a, 3)", "SLICE(SORT_ARRAY(COLLECT_LIST(a), FALSE), 1, 3)"),
        ("LATEST_BY_OFFSET(a)", "MAX_BY(a, ROWOFFSET) FILTER(WHERE NOT a IS NULL)"),
        ("any_spark_function(a, 1)", "ANY_SPARK_FUNCTION(a, 1)"),
        ("a NOT LIKE '%x' AND b BETWEEN 1 AND 2", "a NOT LIKE '%x' AND b BETWEEN 1 AND 2"),
    ],
)
def test_ksqldb_function_is_rewritten(text: str, sql: str) -> None:
    assert spark_sql(rewritten(expression(text, tokenize(text)))) == sql


def test_documentation_lists_all_functions() -> None:
    words = set(re.findall(r"[A-Z_0-9]+", (ROOT / "docs" / "SQL.md").read_text()))
    assert {*SCALARS, *AGGREGATES, *SAME, *UNSUPPORTED} - words == set()
