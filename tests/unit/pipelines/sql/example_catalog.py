"""A catalog of streams and tables for tests of the compiler."""

from __future__ import annotations

from moldau.pipelines.sql.catalog.catalog import Catalog, Source
from moldau.pipelines.sql.compile.compiler import compile_select
from moldau.pipelines.sql.compile.plan import Plan, Purpose
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import CreateSource, Select, Window

DEFINITIONS = """
CREATE STREAM orders (id INT KEY, customer VARCHAR, addr STRUCT<city VARCHAR, geo STRUCT<lat DOUBLE>>,
                      total DOUBLE, items ARRAY<VARCHAR>) WITH (topic='orders');
CREATE STREAM payments (id INT KEY, order_id INT, amount DOUBLE) WITH (topic='payments');
CREATE STREAM loose (line VARCHAR) WITH (topic='loose');
CREATE TABLE customers (name VARCHAR PRIMARY KEY, region VARCHAR) WITH (topic='customers');
CREATE TABLE regions (region VARCHAR PRIMARY KEY, manager VARCHAR) WITH (topic='regions');
"""


def catalog() -> Catalog:
    made = Catalog()
    for statement in parse(DEFINITIONS):
        assert isinstance(statement, CreateSource)
        topic = statement.properties["topic"]
        made.put(Source(statement.kind, statement.name.name, topic, statement.columns, "KAFKA", "JSON"))
    columns = next(made.sources("TABLE")).columns
    made.put(
        Source("TABLE", "hourly", "hourly", columns, "KAFKA", "JSON", window=Window("TUMBLING", 3_600_000))
    )
    return made


def compiled(text: str, purpose: Purpose = "persist") -> Plan:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return compile_select(statement, catalog(), purpose)
