"""The class archive is recorded once, validated, renamed and used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from moldau.pipelines.spark.class_archive import archive_options
from moldau.pipelines.spark.java import Java

RECORD = "-XX:ArchiveClassesAtExit="
USE = "-XX:SharedArchiveFile="


@pytest.fixture
def pyspark(tmp_path: Path) -> Path:
    (tmp_path / "pyspark" / "jars").mkdir(parents=True)
    (tmp_path / "pyspark" / "jars" / "spark.jar").touch()
    return tmp_path / "pyspark"


def make_java(tmp_path: Path, *, good: str = "good") -> Java:
    """A Java that accepts an archive with a certain content as complete."""
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    (home / "bin" / "java").write_text(f'#!/bin/sh\n[ "$(cat "${{1#{USE}}}")" = {good} ]\n')
    (home / "bin" / "java").chmod(0o755)
    return Java(home, 17, "17.0.1")


def exited_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def recording_of(options: list[str]) -> Path:
    return Path(next(option for option in options if option.startswith(RECORD)).removeprefix(RECORD))


def test_recording_becomes_the_archive_after_its_process_has_exited(tmp_path: Path, pyspark: Path) -> None:
    java, cache = make_java(tmp_path), tmp_path / "cache"
    recording = recording_of(archive_options(java, cache, pyspark, record=True))
    assert recording.suffix == f".{os.getpid()}"
    recording.write_text("good")
    assert archive_options(java, cache, pyspark, record=True) == []  # its process, this one, is alive
    recording = recording.rename(recording.with_suffix(f".{exited_process()}"))
    for _ in range(2):
        used = archive_options(java, cache, pyspark, record=True)
        assert used[0] == f"{USE}{recording.with_suffix('.jsa')}"
    assert not recording.exists()


def test_truncated_recording_is_deleted_and_retried_after_a_day(tmp_path: Path, pyspark: Path) -> None:
    java, cache = make_java(tmp_path), tmp_path / "cache"
    recording = recording_of(archive_options(java, cache, pyspark, record=True)).with_suffix(
        f".{exited_process()}"
    )
    recording.write_text("half")
    assert archive_options(java, cache, pyspark, record=True) == []
    assert recording.exists()  # the JVM may still write it
    os.utime(recording, (0, 0))
    assert archive_options(java, cache, pyspark, record=True) == []
    assert not recording.exists()
    failed = recording.with_suffix(".failed")
    os.utime(failed, (0, 0))
    assert archive_options(java, cache, pyspark, record=True)[0].startswith(RECORD)


def test_archive_depends_on_the_jars(tmp_path: Path, pyspark: Path) -> None:
    java, cache = make_java(tmp_path), tmp_path / "cache"
    first = recording_of(archive_options(java, cache, pyspark, record=True))
    (pyspark / "jars" / "more.jar").touch()
    assert recording_of(archive_options(java, cache, pyspark, record=True)).stem != first.stem


def test_java_without_its_own_class_archive_gets_none(tmp_path: Path, pyspark: Path) -> None:
    java = make_java(tmp_path)
    (java.home / "lib" / "server" / "classes.jsa").unlink()
    assert archive_options(java, tmp_path / "cache", pyspark, record=True) == []


def test_archive_is_recorded_only_on_request(tmp_path: Path, pyspark: Path) -> None:
    assert archive_options(make_java(tmp_path), tmp_path / "cache", pyspark, record=False) == []
