"""Every ksqlDB function runs on Spark and returns its documented result."""

from __future__ import annotations

import math
import re
import uuid
from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from moldau.pipelines.sql.compile.function_tables import AGGREGATES, SAME, SCALARS, UNSUPPORTED
from moldau.pipelines.sql.compile.functions import rewritten
from moldau.pipelines.sql.parse.dialect import expression, spark_sql, tokenize
from tests.pipelines.sql.conftest import NewEngine, rows, run

_JSON = """'{"a": {"b": [1, 2]}, "c": "x"}'"""
_MOMENT = 1_600_000_000_123
SCALAR_CALLS: dict[str, Any] = {
    # Strings
    "UCASE('ab')": "AB",
    "LCASE('AB')": "ab",
    "LEN('abc')": 3,
    "CONCAT('a', NULL, 'b')": "ab",
    "CONCAT(ARRAY[1], ARRAY[2])": [1, 2],
    "CONCAT_WS('-', 'a', 'b')": "a-b",
    "INITCAP('the world')": "The World",
    "INSTR('hello', 'l')": 3,
    "INSTR('hello', 'l', 4)": 4,
    "LPAD('a', 3, 'x')": "xxa",
    "RPAD('a', 3, 'x')": "axx",
    "TRIM('  a ')": "a",
    "REPLACE('abc', 'b', 'x')": "axc",
    "REGEXP_REPLACE('a1b2', '[0-9]', '')": "ab",
    "REGEXP_EXTRACT('(\\w)(\\d)', 'b1 c2')": "b1",
    "REGEXP_EXTRACT('(\\w)(\\d)', 'b1 c2', 2)": "1",
    "REGEXP_EXTRACT_ALL('\\d', 'b1 c2')": ["1", "2"],
    "REGEXP_SPLIT_TO_ARRAY('a1b2c', '\\d')": ["a", "b", "c"],
    "SPLIT('a.b.c', '.')": ["a", "b", "c"],
    "SPLIT_TO_MAP('a:=1;b:=2', ';', ':=')": {"a": "1", "b": "2"},
    "SUBSTRING('stream', 2, 3)": "tre",
    "CHR(75)": "K",
    "ELT(2, 'a', 'b')": "b",
    "FIELD('b', 'a', 'b')": 2,
    "MASK('My Test 1-2')": "Xx-Xxxx-n-n",
    "MASK_LEFT('My Test', 2)": "Xx Test",
    "MASK_RIGHT('My Test', 2)": "My Texx",
    "MASK_KEEP_LEFT('My Test', 2)": "My-Xxxx",
    "MASK_KEEP_RIGHT('My Test', 2)": "Xx-Xxst",
    "FROM_BYTES(TO_BYTES('ab', 'utf8'), 'hex')": "6162",
    "INT_FROM_BYTES(TO_BYTES('FFFFFFFB', 'hex'))": -5,
    "BIGINT_FROM_BYTES(TO_BYTES('0000000000000102', 'hex'))": 258,
    "LEN(UUID())": 36,
    # JSON
    f"EXTRACTJSONFIELD({_JSON}, '$.a.b[1]')": "2",
    f"IS_JSON_STRING({_JSON})": True,
    "IS_JSON_STRING('{')": False,
    f"JSON_KEYS({_JSON})": ["a", "c"],
    f"JSON_RECORDS({_JSON})": {"a": '{"b":[1,2]}', "c": "x"},
    "JSON_ITEMS('[1, 2]')": ["1", "2"],
    "JSON_ARRAY_LENGTH('[1, 2]')": 2,
    "JSON_ARRAY_CONTAINS('[1, 2]', 2)": True,
    "TO_JSON_STRING(STRUCT(a := 1))": '{"a":1}',
    # URLs
    "URL_EXTRACT_HOST('http://h:80/p?a=b#f')": "h",
    "URL_EXTRACT_PATH('http://h:80/p?a=b#f')": "/p",
    "URL_EXTRACT_PORT('http://h:80/p?a=b#f')": 80,
    "URL_EXTRACT_PROTOCOL('http://h:80/p?a=b#f')": "http",
    "URL_EXTRACT_QUERY('http://h:80/p?a=b#f')": "a=b",
    "URL_EXTRACT_FRAGMENT('http://h:80/p?a=b#f')": "f",
    "URL_EXTRACT_PARAMETER('http://h:80/p?a=b#f', 'a')": "b",
    "URL_DECODE_PARAM('a%20b')": "a b",
    "URL_ENCODE_PARAM('a b')": "a+b",
    # Numbers
    "ABS(-2)": 2,
    "CEIL(1.2)": 2,
    "FLOOR(1.8)": 1,
    "ROUND(2.5)": 3,
    "ROUND(2.345, 2)": 2.35,
    "TRUNC(-2.7)": -2,
    "TRUNC(2.789, 2)": 2.78,
    "EXP(0)": 1.0,
    "LN(1)": 0.0,
    "LOG(2, 8)": 3.0,
    "SQRT(9)": 3.0,
    "CBRT(27)": 3.0,
    "POWER(2, 3)": 8.0,
    "SIGN(-3)": -1.0,
    "GREATEST(1, 3, 2)": 3,
    "LEAST(1, 3, 2)": 1,
    "PI()": math.pi,
    "DEGREES(PI())": 180.0,
    "RADIANS(180)": math.pi,
    "SIN(0)": 0.0,
    "COS(0)": 1.0,
    "TAN(0)": 0.0,
    "COT(PI() / 4)": 1.0,
    "ASIN(0)": 0.0,
    "ACOS(1)": 0.0,
    "ATAN(0)": 0.0,
    "ATAN2(0, 1)": 0.0,
    "SINH(0)": 0.0,
    "COSH(0)": 1.0,
    "TANH(0)": 0.0,
    "FLOOR(RANDOM())": 0,
    "ROUND(GEO_DISTANCE(50.08, 14.43, 48.21, 16.37))": 251,
    "ROUND(GEO_DISTANCE(50.08, 14.43, 48.21, 16.37, 'MILES'))": 156,
    # Nulls
    "COALESCE(NULL, 1)": 1,
    "IFNULL(NULL, 'x')": "x",
    "NULLIF('x', 'x')": None,
    # Collections
    "ARRAY[1, 2][1]": 1,
    "ARRAY_LENGTH(ARRAY[1, 2])": 2,
    "ARRAY_CONCAT(ARRAY[1], ARRAY[2])": [1, 2],
    "ARRAY_CONTAINS(ARRAY[1, 2], 2)": True,
    "ARRAY_DISTINCT(ARRAY[1, 1])": [1],
    "ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2])": [1],
    "ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2])": [2],
    "ARRAY_UNION(ARRAY[1], ARRAY[2])": [1, 2],
    "ARRAY_JOIN(ARRAY['a', 'b'], '-')": "a-b",
    "ARRAY_MAX(ARRAY[1, 2])": 2,
    "ARRAY_MIN(ARRAY[1, 2])": 1,
    "ARRAY_REMOVE(ARRAY[1, 2], 1)": [2],
    "ARRAY_SORT(ARRAY[2, 1])": [1, 2],
    "ARRAY_SORT(ARRAY[1, 2], 'DESC')": [2, 1],
    "SLICE(ARRAY[1, 2, 3], 2, 3)": [2, 3],
    "GENERATE_SERIES(1, 3)": [1, 2, 3],
    "GENERATE_SERIES(1, 5, 2)": [1, 3, 5],
    "MAP('a' := 1)['a']": 1,
    "MAP_KEYS(MAP('a' := 1))": ["a"],
    "MAP_VALUES(MAP('a' := 1))": [1],
    "MAP_UNION(MAP('a' := 1), MAP('b' := 2))": {"a": 1, "b": 2},
    "AS_MAP(ARRAY['a'], ARRAY[1])": {"a": 1},
    "ENTRIES(MAP('b' := 2), TRUE)[1]->V": 2,
    "STRUCT(a := 1, b := 'x')->b": "x",
    "TRANSFORM(ARRAY[1, 2], x => x + 1)": [2, 3],
    "TRANSFORM(MAP('a' := 1), (k, v) => UCASE(k), (k, v) => v + 1)": {"A": 2},
    "FILTER(ARRAY[1, 2], x => x > 1)": [2],
    "FILTER(MAP('a' := 1, 'b' := 2), (k, v) => v > 1)": {"b": 2},
    "REDUCE(ARRAY[1, 2, 3], 0, (s, x) => s + x)": 6,
    # Time
    f"TIMESTAMPTOSTRING({_MOMENT}, 'yyyy-MM-dd HH:mm:ss.SSS')": "2020-09-13 12:26:40.123",
    f"TIMESTAMPTOSTRING({_MOMENT}, 'HH:mm', 'Europe/Prague')": "14:26",
    "STRINGTOTIMESTAMP('2020-09-13 12:26:40', 'yyyy-MM-dd HH:mm:ss')": 1_600_000_000_000,
    "STRINGTOTIMESTAMP('14:26 2020-09-13', 'HH:mm yyyy-MM-dd', 'Europe/Prague')": 1_599_999_960_000,
    f"UNIX_TIMESTAMP(FROM_UNIXTIME({_MOMENT}))": _MOMENT,
    "UNIX_TIMESTAMP() > 1600000000000": True,
    "UNIX_DATE(FROM_DAYS(5))": 5,
    "UNIX_DATE() > 18000": True,
    "FORMAT_TIMESTAMP(FROM_UNIXTIME(0), 'yyyy')": "1970",
    "FORMAT_TIMESTAMP(FROM_UNIXTIME(0), 'HH', 'Asia/Tokyo')": "09",
    "PARSE_TIMESTAMP('2020-01-02', 'yyyy-MM-dd')": datetime(2020, 1, 2, tzinfo=UTC),
    "FORMAT_DATE(FROM_DAYS(1), 'dd.MM.yy')": "02.01.70",
    "PARSE_DATE('2020-01-02', 'yyyy-MM-dd')": date(2020, 1, 2),
    "DATETOSTRING(1, 'yyyy-MM-dd')": "1970-01-02",
    "STRINGTODATE('1970-01-02', 'yyyy-MM-dd')": 1,
    "DATEADD(DAYS, 2, FROM_DAYS(0))": date(1970, 1, 3),
    "DATESUB(DAYS, 2, FROM_DAYS(3))": date(1970, 1, 2),
    "UNIX_TIMESTAMP(TIMESTAMPADD(SECONDS, 2, FROM_UNIXTIME(0)))": 2_000,
    "UNIX_TIMESTAMP(TIMESTAMPSUB(SECONDS, 2, FROM_UNIXTIME(5000)))": 3_000,
    "FORMAT_TIMESTAMP(CONVERT_TZ(FROM_UNIXTIME(0), 'UTC', 'Asia/Tokyo'), 'HH')": "09",
    "PARSE_TIME('10:11', 'HH:mm')": time(10, 11),
    "FORMAT_TIME(PARSE_TIME('10:11', 'HH:mm'), 'mm-HH')": "11-10",
    "TIMEADD(MINUTES, 2, PARSE_TIME('23:59', 'HH:mm'))": time(0, 1),
    "TIMESUB(MINUTES, 2, PARSE_TIME('00:01', 'HH:mm'))": time(23, 59),
    # Words of the language
    "CAST('12' AS INT)": 12,
    "CAST(1.5 AS VARCHAR)": "1.5",
    "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END": "b",
    "AS_VALUE('x')": "x",
    "'ab' LIKE 'a%'": True,
    "2 BETWEEN 1 AND 3": True,
    "2 IN (1, 2)": True,
}
AGGREGATE_CALLS: dict[str, Any] = {
    "COUNT(*)": 4,
    "SUM(v)": 7,
    "AVG(v)": 7 / 3,
    "MIN(v)": 1,
    "MAX(v)": 3,
    "COUNT_DISTINCT(v)": 2,
    "COLLECT_LIST(v)": [3, 1, 3, None],
    "ARRAY_SORT(COLLECT_SET(v))": [1, 3],
    "TOPK(v, 2)": [3, 3],
    "TOPKDISTINCT(v, 2)": [3, 1],
    "LATEST_BY_OFFSET(v)": 3,
    "LATEST_BY_OFFSET(v, FALSE)": None,
    "LATEST_BY_OFFSET(v, 2)": [1, 3],
    "EARLIEST_BY_OFFSET(v)": 3,
    "EARLIEST_BY_OFFSET(v, 2)": [3, 1],
    "HISTOGRAM(name)": {"a": 3, "b": 1},
    "ATTR(k)": "k",
    "ATTR(name)": None,
    "ROUND(STDDEV_SAMPLE(v), 3)": 1.155,
    "CORRELATION(v, v)": 1.0,
}


def _plain(value: Any) -> Any:
    return float(value) if hasattr(value, "as_integer_ratio") and not isinstance(value, int) else value


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        return math.isclose(float(found), wanted, abs_tol=1e-9)
    if isinstance(wanted, datetime) and isinstance(found, datetime):
        return found.replace(tzinfo=found.tzinfo or UTC) == wanted
    return bool(found == wanted) or bool(_plain(found) == _plain(wanted))


def test_scalar_functions_return_their_results(new_engine: NewEngine) -> None:
    spark = new_engine().spark
    columns = []
    for number, text in enumerate(SCALAR_CALLS):
        columns.append(f"{spark_sql(rewritten(expression(text, tokenize(text))))} AS c{number}")
    (row,) = spark.sql(f"SELECT {', '.join(columns)}").collect()
    wrong = {
        text: found
        for (text, wanted), found in zip(SCALAR_CALLS.items(), row, strict=True)
        if not _same(found, wanted)
    }
    assert wrong == {}


def test_all_functions_are_tested() -> None:
    called = set(re.findall(r"[A-Z_0-9]+(?=[(\[])", " ".join([*SCALAR_CALLS, *AGGREGATE_CALLS])))
    known = {*SCALARS, *AGGREGATES, *SAME} - {"EXPLODE"}
    assert known - called == set(), "functions without a call"
    assert not known & set(UNSUPPORTED)


def test_aggregate_functions_explode_and_group_by_several_columns(new_engine: NewEngine) -> None:
    engine, topic = new_engine(), f"f_{uuid.uuid4().hex[:8]}"
    run(
        engine,
        f"CREATE STREAM s (k VARCHAR KEY, v INT, name VARCHAR) WITH (topic='{topic}', partitions=1);"
        "INSERT INTO s VALUES ('k', 3, 'a'), ('k', 1, 'b'), ('k', 3, 'a'), ('k', NULL, 'a');",
    )
    (row,) = rows(engine, f"SELECT {', '.join(AGGREGATE_CALLS)} FROM s GROUP BY k")
    wrong = {
        text: found
        for (text, wanted), found in zip(AGGREGATE_CALLS.items(), row, strict=True)
        if not _same(found, wanted)
    }
    assert wrong == {}
    grouped = "SELECT k, name, COUNT(*) AS n FROM s GROUP BY k, name HAVING COUNT(*) > 1"
    assert rows(engine, grouped) == [["k", "a", 3]]
    exploded = "SELECT name, EXPLODE(ARRAY[v, 0]) AS e FROM s WHERE name = 'b'"
    assert rows(engine, exploded) == [["b", 1], ["b", 0]]
    assert rows(engine, "SELECT ROWKEY, ROWTIME > '2020-01-01' AS new FROM s LIMIT 1") == [["k", True]]


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_unsupported_function_names_the_alternative(name: str) -> None:
    text = f"{name}(a, b)"
    with pytest.raises(Exception, match=f"Function {name} is not supported") as caught:
        rewritten(expression(text, tokenize(text)))
    assert UNSUPPORTED[name] in str(caught.value)
