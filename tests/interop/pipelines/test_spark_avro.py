"""Spark's own `from_avro` reads records of a registry with the schema that `avro_schema` returns."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moldau.client.registry import AvroSerializer, Reference, RegistryClient, Schema
from moldau.testing import Cluster
from tests.harness.registry.instances import running_registry
from tests.interop import jars

pytestmark = [pytest.mark.interop, pytest.mark.spark]

MONEY = '{"type":"record","name":"Money","namespace":"base","fields":[{"name":"cents","type":"long"}]}'
BILL = (
    '{"type":"record","name":"Bill","namespace":"shop","fields":[{"name":"total","type":"base.Money"},'
    '{"name":"tip","type":["null","base.Money"],"default":null}]}'
)
#: Jars are set when the JVM starts, so the session has a process of its own.
SCRIPT = """
import sys

from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from moldau import pipelines

jars, registry, data = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
spark = pipelines.session("avro", master="local[1]", config={"spark.jars": jars})
schema = pipelines.avro_schema(registry, int.from_bytes(data[1:5], "big"))
frame = spark.createDataFrame([(data,)], "value binary")
bill = from_avro(F.expr("substr(value, 6)"), schema)
print([row.asDict(True) for row in frame.select(bill.alias("bill")).select("bill.*").collect()])
spark.stop()
"""


def test_from_avro_reads_records_of_a_registry() -> None:
    try:
        needed = ",".join(map(str, jars.spark_avro_jars()))
    except jars.Missing as missing:
        pytest.skip(str(missing))
    with Cluster() as cluster, running_registry(cluster.bootstrap_servers) as registry:
        with RegistryClient(registry.url) as client:
            client.register("money", Schema(MONEY))
            bill = Schema(BILL, references=(Reference("base.Money", "money", 1),))
            data = AvroSerializer(client, bill).serialize("bills", {"total": {"cents": 9}, "tip": None})
        command = [sys.executable, "-c", SCRIPT, needed, registry.url, (data or b"").hex()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=True)
    assert "[{'total': {'cents': 9}, 'tip': None}]" in done.stdout
