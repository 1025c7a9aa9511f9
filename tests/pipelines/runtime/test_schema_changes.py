"""Changed schemas of data and pipelines: records that do not match become dead letters, and a pipeline that
cannot continue says what to do."""

from __future__ import annotations

import io
import json
from itertools import chain
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from moldau.testing import Cluster
from tests.pipelines.runtime.hosts import run_yaml
from tests.pipelines.runtime.topics import committed, create, orders, produce

pytestmark = pytest.mark.timeout(400)

WRITER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
GROWN = {**WRITER, "fields": [*WRITER["fields"], {"name": "extra", "type": "double"}]}

READING = """\
name: json-orders
source: {{topic: schema-json, format: json, schema: "id LONG, name STRING, at TIMESTAMP"}}
sink: {{topic: schema-json-out, format: json}}
dead_letter: schema-dead
trigger: available_now
---
name: csv-orders
source: {{topic: schema-csv, format: csv, schema: "id LONG, name STRING"}}
sink: {{topic: schema-csv-out, format: json}}
dead_letter: schema-dead
trigger: available_now
---
name: avro-orders
source: {{topic: schema-avro, format: avro, schema: "id INT, name STRING, note STRING",
         options: {{avro_schema: '{writer}'}}}}
sink: {{topic: schema-avro-out, format: json}}
dead_letter: schema-dead
trigger: available_now
"""
#: What each topic holds: records that fit, as they come out, and records that do not.
FIT: dict[str, list[tuple[bytes, dict[str, Any]]]] = {}
MISFIT: dict[str, list[bytes]] = {}


def avro(schema: dict[str, Any], **fields: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, fields)
    return buffer.getvalue()


FIT["json"] = [
    (b'{"id": 1, "name": "a", "at": 1000}', {"id": 1, "name": "a", "at": 1000}),
    (b'{"id": 2, "name": "b", "at": null, "added": [1]}', {"id": 2, "name": "b", "at": None}),
    (b'{"id": 3}', {"id": 3, "name": None, "at": None}),
    (b'{"id": 4, "name": 5, "at": "1970-01-01T00:00:01Z"}', {"id": 4, "name": "5", "at": 1000}),
]
MISFIT["json"] = [
    b'{"id": "5"}',
    b'{"id": 5.5}',
    b'{"id": {"number": 5}}',
    b'{"id": 99999999999999999999}',
    b'{"id": 5, "at": "yesterday"}',
    b'[{"id": 5}]',
    b"5",
    b"",
]
FIT["csv"] = [(b"1,a", {"id": 1, "name": "a"}), (b'2,"b,c"', {"id": 2, "name": "b,c"})]
MISFIT["csv"] = [b"3,c,added", b"4", b"five,e", b"6,f\n7,g", b""]
FIT["avro"] = [(avro(WRITER, id=1, name="a"), {"id": 1, "name": "a", "note": None})]
MISFIT["avro"] = [avro(GROWN, id=2, name="b", extra=0.5), avro(WRITER, id=1 << 40, name="c"), b"\x02", b""]


def test_records_with_a_changed_schema(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "schema-dead", *(f"schema-{kind}{end}" for kind in FIT for end in ("", "-out")))
    for kind, good in FIT.items():
        produce(servers, f"schema-{kind}", [*MISFIT[kind], *(record for record, _ in good)])
    found = run_yaml(spark, servers, tmp_path, READING.format(writer=json.dumps(WRITER)))
    for kind, good in FIT.items():
        status = found[f"{kind}-orders"]
        assert (status.state, status.error, status.dead_letters) == ("finished", None, len(MISFIT[kind]))
        out = [json.loads(value or b"") for _, value, _ in committed(servers, f"schema-{kind}-out")]
        assert out == [row for _, row in good]
    dead = [(value, headers) for _, value, headers in committed(servers, "schema-dead")]
    assert sorted(value or b"" for value, _ in dead) == sorted(chain(*MISFIT.values()))
    messages = {headers["__connect.errors.exception.message"].decode() for _, headers in dead}
    assert messages >= {
        "invalid JSON for the schema",
        "invalid JSON for the schema: invalid time in column at",
        "invalid delimited text for the schema",
        "unexpected bytes after the Avro data",
        "not of this Avro schema",
    }


STATEFUL = """\
name: counting
source: {{topic: schema-state, format: json, schema: "id LONG, amount DOUBLE"}}
steps:
  - sql: SELECT {key} AS odd, {values} FROM input GROUP BY 1
sink: {{topic: schema-state-out, format: json, key: odd, output_mode: update}}
trigger: available_now
"""
LAKE = """\
name: lake
source: {{topic: schema-state, format: json, schema: "id LONG, amount DOUBLE"}}
steps:
  - select: [{columns}]
sink: {{format: parquet, path: {folder}/lake}}
trigger: available_now
"""


def test_pipelines_with_a_changed_schema(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "schema-state", "schema-state-out", "schema-other")
    produce(servers, "schema-state", orders(0, 10))
    produce(servers, "schema-other", orders(0, 10))

    def run(key: str, values: str, columns: str) -> dict[str, Any]:
        text = STATEFUL.format(key=key, values=values)
        lake = LAKE.format(columns=columns, folder=tmp_path)
        return run_yaml(spark, servers, tmp_path, f"{text}---\n{lake}")

    first = run("id % 2", "count(*) AS number", "id")
    assert [status.state for status in first.values()] == ["finished", "finished"]
    produce(servers, "schema-state", orders(10, 20))
    for key, values in (
        ("id % 2", "count(*) AS number, sum(amount) AS total"),
        ("string(id % 2)", "count(*) AS number"),
    ):
        changed = run(key, values, "id, amount")
        assert (changed["counting"].state, changed["counting"].restarts) == ("failed", 0)
        error = str(changed["counting"].error)
        assert error.startswith("The state in the checkpoint belongs to a different query. Restore the query")
        assert changed["lake"].state == "finished"
    again = run("id % 2", "count(*) AS number", "id, amount")
    assert again["counting"].state == "finished"
    values = [value for _, value, _ in committed(servers, "schema-state-out")]
    assert values[-2:] == [b'{"odd":0,"number":10}', b'{"odd":1,"number":10}']
    rows = spark.read.option("mergeSchema", "true").parquet(f"{tmp_path}/lake").orderBy("id").collect()
    assert [(row.id, row.amount) for row in rows] == [
        *((number, None) for number in range(10)),
        *((number, float(number)) for number in range(10, 20)),
    ]
    other = run_yaml(
        spark,
        servers,
        tmp_path,
        STATEFUL.format(key="id % 2", values="count(*) AS number").replace("schema-state,", "schema-other,"),
    )
    assert (other["counting"].state, other["counting"].restarts) == ("failed", 0)
    assert "belongs to a pipeline that reads the topics schema-state. Give this pipeline" in str(
        other["counting"].error
    )
