"""A kept command that is of no use is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from moldau.pipelines.spark.driver_jvm import Launch, driver_jvm, read_launch, start_jvm

MAIN = "org.apache.spark.deploy.SparkSubmit"


def test_a_command_that_starts_no_jvm_comes_to_nothing() -> None:
    assert start_jvm(Launch(["/bin/false"], {}), {"spark.master": "local"}) is None
    assert start_jvm(Launch(["/no/such/java"], {}), {}) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how a process was started")
def test_how_a_process_was_started_is_noted_for_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, cache = tmp_path / "pyspark", tmp_path / "cache"
    (installed / "jars").mkdir(parents=True)
    cache.mkdir()
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", "/java")
    monkeypatch.setenv("SPARK_WORDS", "no text \udcff")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    command = [sys.executable, "-c", "input(1)", "-Dword=two words\nand a line \udcff", MAIN]
    # Spark's scripts make this of the setting spark.driver.extraLibraryPath.
    variables = {"LD_LIBRARY_PATH": "/native", "SPARK_HOME": str(installed), "OTHER": "no text \udcff"}
    with subprocess.Popen(
        [*command, "--conf", "a=b", "pyspark-shell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **variables},
    ) as process:
        assert process.stdout is not None and process.stdout.read(1) == b"1", "it runs"
        with driver_jvm(installed, cache, {"spark.master": "local"}):
            SparkContext._gateway = SimpleNamespace(proc=process)
        process.communicate(b"\n")
    (kept,) = cache.iterdir()
    assert read_launch(kept) == Launch(command, {"LD_LIBRARY_PATH": "/native", "SPARK_HOME": str(installed)})
    assert kept.stat().st_mode & 0o077 == 0

    kept.write_text('{"command": ["/bin/false"], "variables": {}}')
    SparkContext._gateway = None
    with driver_jvm(installed, cache, {"spark.master": "local"}):
        assert not kept.exists(), "what leads to nothing is thrown away"


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    note = tmp_path / "launch.json"
    assert read_launch(note) is None
    for text in ("", "[]", '{"command": 1}', '{"else": []}'):
        note.write_text(text)
        assert read_launch(note) is None
    note.write_text('{"command": ["java"], "variables": {"SPARK_HOME": "here"}}')
    assert read_launch(note) == Launch(["java"], {"SPARK_HOME": "here"})
