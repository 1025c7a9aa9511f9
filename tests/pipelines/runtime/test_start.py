"""A session's JVM is started as Spark does it once, and then without detours; its workers are forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, os, sys
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql.functions import udf
from moldau import pipelines

spark = pipelines.session("start", master="local[1]", config={"spark.driver.memory": "1g"})
parent = udf(lambda number: Path(f"/proc/{os.getppid()}/cmdline").read_text())
(row,) = spark.range(1).select(parent("id")).collect()
started = SparkContext._gateway.proc
said = {"command": started.args[0], "parent": row[0], "app": spark.sparkContext.appName,
        "variables": sorted(name for name in os.environ if "GATEWAY" in name or name == "MOLDAU_FORKS")}
print(json.dumps(said))
"""


def start(cache: Path) -> dict[str, Any]:
    environment = {**os.environ, "MOLDAU_CACHE": str(cache)}
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
    assert "moldau.pipelines.forks.server" in first["parent"]
    assert len(list(tmp_path.glob("launch-*.json"))) == 1

    second = start(tmp_path)
    assert second["command"].endswith("java")
    assert {**second, "command": ""} == {**first, "command": "", "parent": second["parent"]}
    assert second["variables"] == [], "nothing is left behind for other programs"
