"""A session's JVM is started as Spark does it once, and then without detours; its workers are forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, os, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql.functions import udf
from moldau import pipelines

def session(_):
    return pipelines.session("start", master="local[1]", config=CONFIG)

def seen(number):
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_text()
    return json.dumps([parent, os.environ["OMP_NUM_THREADS"], time.strftime("%Z")])

CONFIG = {"spark.driver.memory": "1g", "spark.executorEnv.TZ": "ABC-9"}
with ThreadPoolExecutor(2) as threads:
    spark, same = threads.map(session, range(2))
assert spark is same
(row,) = spark.range(1).select(udf(seen)("id")).collect()
parent, threads, zone = json.loads(row[0])
started = SparkContext._gateway.proc
said = {"command": started.args[0], "parent": parent, "app": spark.sparkContext.appName,
        "threads": threads, "zone": zone,
        "left": [name for name in os.environ if "GATEWAY" in name or name.endswith(("_FORKS", "_PYTHON"))]}
print(json.dumps(said))
"""


def start(cache: Path) -> dict[str, Any]:
    environment = {**os.environ, "MOLDAU_CACHE": str(cache), "OMP_NUM_THREADS": "8"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_how_a_jvm_is_started_is_kept(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert first["command"].endswith("spark-submit")
    assert "moldau.pipelines.spark.forks.server" in first["parent"]
    assert (first["threads"], first["zone"]) == ("1", "ABC")
    assert len(list(tmp_path.glob("launch-*.json"))) == 1

    second = start(tmp_path)
    assert second["command"].endswith("java")
    assert {**second, "command": ""} == {**first, "command": "", "parent": second["parent"]}
    assert second["left"] == [], "nothing is left behind for other programs"
