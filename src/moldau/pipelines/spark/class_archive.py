"""An archive of Spark's classes that later JVMs map into memory (Java's AppCDS, JEP 350).

The first quick-start session records the classes it loads; its JVM writes the archive when it exits, after
the Python process may have exited. The next session validates the recording, renames it to the archive and
uses it, as all later sessions do. Several processes may do any of this at the same time: a recording belongs
to one process, by its process id, and becomes the archive by an atomic rename. A JVM ignores an archive that
does not match (another Java, other jars) and starts as usual.
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

#: The JVM may still write a recording after its Python process has exited.
_WRITE_TIMEOUT_SECONDS = 60.0
#: Pause after a failed recording, which makes a start slow.
_RETRY_SECONDS = 86_400.0
_RECORD = "-XX:ArchiveClassesAtExit"


def archive_options(java: Java, cache: Path, pyspark: Path, *, record: bool) -> list[str]:
    """Return the JVM options to use the archive, or, with `record`, to record one if there is none yet."""
    if not java.has_shared_classes:
        return []
    # Some releases of Java log at length why an archive does not match.
    quiet = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr", "-Xlog:cds=off"]
    archive = cache / f"spark-{_fingerprint(java, pyspark)}.jsa"
    if archive.exists() or _adopt(java, pyspark, archive):
        return [f"-XX:SharedArchiveFile={archive}", *quiet]
    if not record or _recordings(archive) or _age_seconds(_failed(archive)) < _RETRY_SECONDS:
        return []
    cache.mkdir(parents=True, exist_ok=True)
    return [f"{_RECORD}={archive.with_suffix(f'.{os.getpid()}')}", *quiet]


def records(options: Sequence[str]) -> bool:
    """Return whether a JVM with these options records an archive."""
    return any(option.startswith(_RECORD) for option in options)


def load_classes(spark: SparkSession) -> None:
    """Load the classes of common operators, so that the recording contains them."""
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
    """Make a complete recording the archive; return whether there is an archive."""
    for recording in _recordings(archive):
        if _alive(int(recording.suffix[1:])):
            continue
        try:
            if _is_complete(java, pyspark, recording):
                recording.replace(archive)
            elif _age_seconds(recording) > _WRITE_TIMEOUT_SECONDS:
                recording.unlink()
                _failed(archive).touch()
        except FileNotFoundError:
            # Another process has done the same.
            continue
    return archive.exists()


def _is_complete(java: Java, pyspark: Path, recording: Path) -> bool:
    """Return whether a JVM maps it with the class path of Spark and validates its checksums."""
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
