"""The class archive's life: recorded once, checked, taken over, used; never twice at once."""

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
    """A Java that takes an archive for complete if it has a certain content."""
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    (home / "bin" / "java").write_text(f'#!/bin/sh\n[ "$(cat "${{1#{USE}}}")" = {good} ]\n')
    (home / "bin" / "java").chmod(0o755)
    return Java(home, 17, "17.0.1")


def ended_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def recording_of(options: list[str]) -> Path:
    return Path(next(option for option in options if option.startswith(RECORD)).removeprefix(RECORD))


def test_a_recording_becomes_the_archive_when_its_process_is_gone(tmp_path: Path, pyspark: Path) -> None:
    java, cache = make_java(tmp_path), tmp_path / "cache"
    recording = recording_of(archive_options(java, cache, pyspark, record=True))
    assert recording.suffix == f".{os.getpid()}"
    recording.write_text("good")
    assert archive_options(java, cache, pyspark, record=True) == []  # its process, this one, lives
    recording = recording.rename(recording.with_suffix(f".{ended_process()}"))
    for _ in range(2):
        used = archive_options(java, cache, pyspark, record=True)
        assert used[0] == f"{USE}{recording.with_suffix('.jsa')}"
    assert not recording.exists()


def test_one_that_was_cut_off_is_thrown_away_and_not_tried_again_at_once(
    tmp_path: Path, pyspark: Path
) -> None:
    java, cache = make_java(tmp_path), tmp_path / "cache"
    recording = recording_of(archive_options(java, cache, pyspark, record=True)).with_suffix(
        f".{ended_process()}"
    )
    recording.write_text("half")
    assert archive_options(java, cache, pyspark, record=True) == []
    assert recording.exists()  # it may still be being written
    os.utime(recording, (0, 0))
    assert archive_options(java, cache, pyspark, record=True) == []
    assert not recording.exists()
    failed = recording.with_suffix(".failed")
    os.utime(failed, (0, 0))
    assert archive_options(java, cache, pyspark, record=True)[0].startswith(RECORD)


def test_other_jars_have_another_archive(tmp_path: Path, pyspark: Path) -> None:
    java, cache = make_java(tmp_path), tmp_path / "cache"
    first = recording_of(archive_options(java, cache, pyspark, record=True))
    (pyspark / "jars" / "more.jar").touch()
    assert recording_of(archive_options(java, cache, pyspark, record=True)).stem != first.stem


def test_a_java_without_an_archive_of_its_own_gets_none(tmp_path: Path, pyspark: Path) -> None:
    java = make_java(tmp_path)
    (java.home / "lib" / "server" / "classes.jsa").unlink()
    assert archive_options(java, tmp_path / "cache", pyspark, record=True) == []


def test_only_a_quick_start_records(tmp_path: Path, pyspark: Path) -> None:
    assert archive_options(make_java(tmp_path), tmp_path / "cache", pyspark, record=False) == []
