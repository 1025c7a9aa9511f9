"""How a session starts its JVM and its Python workers."""

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
    return pipelines.session("start", master="local[1]", quick_start=QUICK_START, config=CONFIG)

def ancestors():
    pid, found = os.getppid(), []
    while pid > 1 and pid != DRIVER:
        found.append(Path(f"/proc/{pid}/cmdline").read_text())
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return " ".join(found)

def seen(number):
    kernels = "moldau.pipelines.arrow.decode_kernel" in sys.modules
    return json.dumps([ancestors(), os.environ["OMP_NUM_THREADS"], time.strftime("%Z"), kernels])

DRIVER = os.getpid()
QUICK_START = sys.argv[1] == "quick"
CONFIG = {"spark.driver.memory": "1g", "spark.executorEnv.TZ": "ABC-9"}
with ThreadPoolExecutor(2) as threads:
    spark, same = threads.map(session, range(2))
assert spark is same
(row,) = spark.range(1).select(udf(seen)("id")).collect()
ancestors, threads, zone, kernels = json.loads(row[0])
print(json.dumps({
    "jvm": SparkContext._gateway.proc.args[0], "ancestors": ancestors, "threads": threads, "zone": zone,
    "kernels": kernels,
    "left": [name for name in os.environ if "GATEWAY" in name or name.endswith(("_SERVER", "_PYTHON"))],
}))
"""


def start(cache: Path, kind: str, **variables: str) -> dict[str, Any]:
    environment = {**os.environ, "MOLDAU_CACHE": str(cache), "OMP_NUM_THREADS": "8", **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def check(seen: dict[str, Any]) -> None:
    assert seen["jvm"].endswith("spark-submit"), "PySpark itself starts the JVM"
    assert (seen["threads"], seen["zone"]) == ("1", "ABC"), "Spark's variables for workers"
    assert seen["kernels"], "the daemon loads the kernels before it forks workers"
    assert seen["left"] == [], "no variable is left for other programs"


def test_quick_start_session_forks_workers_from_the_fork_server(tmp_path: Path) -> None:
    seen = start(tmp_path, "quick")
    check(seen)
    assert "fork_server.server" in seen["ancestors"]


def test_session_without_quick_start_uses_the_worker_start_of_spark(tmp_path: Path) -> None:
    seen = start(tmp_path, "default")
    check(seen)
    assert "fork_server" not in seen["ancestors"]
    assert "org.apache.spark.deploy.SparkSubmit" in seen["ancestors"], "the JVM starts the daemon"
    assert "moldau.pipelines.spark.worker_daemon" in seen["ancestors"]
