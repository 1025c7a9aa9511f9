"""The wrapper scripts around Java and Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.pipelines.spark.executables import java_home, python_script, worker_python
from moldau.pipelines.spark.java import Java, java_at


def make_java(folder: Path, version: str) -> Path:
    """A Java home whose `java` prints its arguments."""
    (folder / "bin").mkdir(parents=True)
    executable = folder / "bin" / "java"
    executable.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    executable.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize(("version", "kept"), [("17.0.1", True), ("25.0.2", False)])
def test_java_script_drops_unneeded_options(tmp_path: Path, version: str, kept: bool) -> None:
    home = make_java(tmp_path / "a jdk", version)
    (home / "lib").mkdir()
    found = java_at(home)
    assert found is not None
    quiet = java_home(found, tmp_path / "cache")
    assert quiet == java_home(found, tmp_path / "cache")
    opened = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    arguments = ["--add-modules=jdk.incubator.vector", opened, "-cp", "a b", "Main"]
    said = subprocess.run(
        [quiet / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    expected = [*([opened] if kept else []), "-cp", "a b", "Main"]
    assert said.split("\n")[:-1] == [f"<{argument}>" for argument in expected]
    assert (quiet / "lib").is_dir()
    assert Java(quiet, found.release, found.version) == java_at(quiet)


def test_python_script_removes_zip_files_of_spark_from_pythonpath(tmp_path: Path) -> None:
    script = python_script(tmp_path / "pyspark", tmp_path / "cache")
    zips = tmp_path / "pyspark" / "python" / "lib"
    path = f"{zips}/pyspark.zip:/one two:{zips}/py4j-src.zip:/other/python/lib/x.zip"
    said = subprocess.run(
        [script, "-c", "import os; print(os.environ['PYTHONPATH'])"],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.strip() == "/one two:/other/python/lib/x.zip"


def test_python_script_discards_the_output_of_the_state_process_but_not_its_errors(tmp_path: Path) -> None:
    script = python_script(tmp_path / "pyspark", tmp_path / "cache")
    program = "import sys; print('a step'); print('an error', file=sys.stderr)"
    for argument, printed in (
        ("pyspark.sql.streaming.transform_with_state_driver_worker", ""),
        ("pyspark.worker", "a step"),
    ):
        done = subprocess.run([script, "-c", program, argument], capture_output=True, text=True, check=True)
        assert (done.stdout.strip(), done.stderr.strip()) == (printed, "an error")


def test_python_script_is_used_on_this_machine_only() -> None:
    assert worker_python({}, "/cache/python", "local[2]", local=True) == "/cache/python"
    assert worker_python({}, "/cache/python", "spark://elsewhere:7077", local=False) == sys.executable
    assert worker_python({}, "/cache/python", "yarn", local=False) is None


def test_pyspark_python_set_by_the_user_is_kept() -> None:
    for master, local in (("local", True), ("spark://elsewhere:7077", False)):
        environ = {"PYSPARK_PYTHON": "/usr/bin/python3"}
        assert worker_python(environ, "/cache/python", master, local=local) is None
