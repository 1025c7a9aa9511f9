"""Spark's classes, loaded and checked once and mapped by every later start (Java's class data sharing).

The first session that wants to start quickly records the classes it loads; its JVM writes the archive when
it ends, behind the back of the Python process. The next one checks the recording, takes it over as the
archive and maps it, as all later ones do. Several processes may do any of this at once: a recording belongs
to one process, by its number, and becomes the archive by being renamed. An archive that does not fit
(another Java, other jars) is ignored by the JVM, which then starts as usual.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.pipelines.spark.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A recording whose process is gone may still be being written by its JVM.
_WRITING_SECONDS = 60.0
#: After a recording that came to nothing there is no second one for a day: recording makes a start slow.
_PAUSE_SECONDS = 86_400.0
_RECORD = "-XX:ArchiveClassesAtExit"


def archive_options(java: Java, cache: Path, pyspark: Path, *, record: bool) -> list[str]:
    """What to give a JVM so that it uses the archive, or records one if there is none yet and it may."""
    if not java.has_shared_classes:
        return []
    # Why an archive does not fit is told in many words by some releases of Java.
    quiet = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr", "-Xlog:cds=off"]
    archive = cache / f"spark-{_fingerprint(java, pyspark)}.jsa"
    if archive.exists() or _adopt(java, pyspark, archive):
        return [f"-XX:SharedArchiveFile={archive}", *quiet]
    if not record or _recordings(archive) or _age_seconds(_failed(archive)) < _PAUSE_SECONDS:
        return []
    cache.mkdir(parents=True, exist_ok=True)
    return [f"{_RECORD}={archive.with_suffix(f'.{os.getpid()}')}", *quiet]


def records(options: Sequence[str]) -> bool:
    """Whether a JVM with these options records."""
    return any(option.startswith(_RECORD) for option in options)


def load_classes(spark: SparkSession) -> None:
    """Have the classes recorded that nearly every program wants, whatever this one goes on to do."""
    spark.sql("SELECT id % 2 AS rest, count(*) AS found FROM range(10) WHERE id > 1 GROUP BY 1").collect()


def _fingerprint(java: Java, pyspark: Path) -> str:
    jars = sorted(path.name for path in (pyspark / "jars").glob("*.jar"))
    about = [str(java.home), java.version, str(pyspark), *jars]
    return hashlib.sha256("\0".join(about).encode()).hexdigest()[:16]


def _recordings(archive: Path) -> list[Path]:
    return [path for path in archive.parent.glob(f"{archive.stem}.*") if path.suffix[1:].isdigit()]


def _failed(archive: Path) -> Path:
    return archive.with_suffix(".failed")


def _age_seconds(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _adopt(java: Java, pyspark: Path, archive: Path) -> bool:
    """Make a complete recording the archive."""
    for recording in _recordings(archive):
        if _alive(int(recording.suffix[1:])):
            continue
        try:
            if _is_complete(java, pyspark, recording):
                recording.replace(archive)
            elif _age_seconds(recording) > _WRITING_SECONDS:
                recording.unlink()
                _failed(archive).touch()
        except FileNotFoundError:
            # Another process was faster with the same.
            continue
    return archive.exists()


def _is_complete(java: Java, pyspark: Path, recording: Path) -> bool:
    """Whether the JVM maps it, with the class path that Spark will give it, and finds its sums right."""
    jars = pyspark / "jars"
    class_path = [f"{pyspark}/conf/", *map(str, jars.glob("slf4j-api-*.jar")), f"{jars}/*"]
    command = [
        str(java.home / "bin" / "java"),
        f"-XX:SharedArchiveFile={recording}",
        "-XX:+VerifySharedSpaces",
        "-XX:+SuppressFatalErrorMessage",
        "-Xshare:on",
        "-cp",
        ":".join(class_path),
        "-version",
    ]
    try:
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
