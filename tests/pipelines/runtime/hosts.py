"""Run the pipelines of YAML text in the session of the test until they have ended."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from moldau.base.backoff import Backoff
from moldau.pipelines.runtime.host import Host, Hosted
from moldau.pipelines.runtime.pipeline_files import load
from moldau.pipelines.runtime.python_pipeline import Context
from moldau.pipelines.runtime.restarts import Policy
from moldau.pipelines.runtime.state import StateFolder, Status
from tests.harness.waiting import eventually


def host_of(
    spark: SparkSession, servers: str, folder: Path, files: list[Path], policy: Policy | None = None
) -> Host:
    """Return a host with all pipelines of these files, not started; their state is in the folder."""
    host = Host(spark, StateFolder(folder / "state"), lambda: 0)
    for name, runnable in load(files).pipelines.items():
        context = Context(servers, str(folder / "state" / name / "checkpoint"))
        host.add(Hosted(runnable, Status(name), context, policy or Policy()))
    return host


def run_to_the_end(host: Host, timeout: float = 180.0) -> dict[str, Status]:
    """Run pipelines that end by themselves; return their statuses."""

    def ended() -> bool:
        host.tick(time.monotonic())
        return host.has_ended

    try:
        eventually(ended, timeout=timeout, every=0.1, what=str([each.status for each in host.hosted]))
    finally:
        host.stop()
    return {each.status.name: each.status for each in host.hosted}


def run_yaml(spark: SparkSession, servers: str, folder: Path, text: str) -> dict[str, Status]:
    """Run pipelines of YAML text that end by themselves; the next run in the folder continues."""
    file = folder / "pipelines.yaml"
    file.write_text(text)
    return run_to_the_end(host_of(spark, servers, folder, [file], Policy(Backoff(0.1, 60.0), tries=3)))
