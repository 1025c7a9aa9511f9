"""Apache Kafka's jars: the versions we test with, and getting them with Maven into `.interop/`.

`KAFKA_LIBS` (and `KAFKA_CLIENTS_OLD_LIBS` for the older client, `KAFKA_STREAMS_LIBS` for Kafka Streams) name
folders that are there already; then nothing is downloaded. What Maven brought once stays in `.interop/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

KAFKA = "4.3.0"
OLD_CLIENT = "3.9.1"
LOG4J = "2.24.3"
SLF4J = "1.7.36"

FOLDER = Path(__file__).parents[2] / ".interop"

_KAFKA_ARTIFACTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA}",
    f"org.apache.kafka:kafka-tools:{KAFKA}",
    f"org.apache.kafka:kafka-shell:{KAFKA}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J}",
    f"org.apache.logging.log4j:log4j-core:{LOG4J}",
)
_OLD_CLIENT_ARTIFACTS = (
    f"org.apache.kafka:kafka-clients:{OLD_CLIENT}",
    f"org.slf4j:slf4j-nop:{SLF4J}",
)
_STREAMS_ARTIFACTS = (
    f"org.apache.kafka:kafka-streams:{KAFKA}",
    f"org.slf4j:slf4j-nop:{SLF4J}",
)

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>moldau</groupId><artifactId>{name}</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


class Missing(RuntimeError):
    """Something this machine lacks; the message says what."""


def kafka_libs() -> Path:
    return _existing("KAFKA_LIBS") or _with_maven(f"kafka-{KAFKA}", _KAFKA_ARTIFACTS)


def old_client_libs() -> Path:
    return _existing("KAFKA_CLIENTS_OLD_LIBS") or _with_maven(
        f"kafka-clients-{OLD_CLIENT}", _OLD_CLIENT_ARTIFACTS
    )


def streams_libs() -> Path:
    return _existing("KAFKA_STREAMS_LIBS") or _with_maven(f"kafka-streams-{KAFKA}", _STREAMS_ARTIFACTS)


def compiled(source: Path, libs: Path, version: str) -> Path:
    """The folder with the classes of a Java file, compiled against the jars of that version."""
    if shutil.which("javac") is None:
        raise Missing("javac is not installed (apt install default-jdk-headless)")
    classes = FOLDER / f"classes-{version}"
    done = classes / f"{source.stem}.class"
    if not done.exists() or done.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-nowarn", "-proc:none", "-cp", f"{libs}/*", "-d", str(classes), str(source)]
        subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    return classes


def _existing(variable: str) -> Path | None:
    folder = os.environ.get(variable)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise Missing(f"{variable} names {folder}, which is not a folder")
    return Path(folder)


def _with_maven(name: str, artifacts: tuple[str, ...]) -> Path:
    libs = FOLDER / name
    if (libs / "complete").exists():
        return libs
    if shutil.which("mvn") is None:
        raise Missing(
            "Maven is not installed (apt install maven), and KAFKA_LIBS names no folder with the jars"
        )
    libs.mkdir(parents=True, exist_ok=True)
    pom = libs / "pom.xml"
    pom.write_text(_POM.format(name=name, dependencies="\n".join(map(_dependency, artifacts))))
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = ["mvn", "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={libs}"]
    brought = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if brought.returncode != 0:
        raise Missing(f"Maven could not bring the jars: {brought.stdout[-1500:]}")
    (libs / "complete").touch()
    return libs


def _dependency(coordinates: str) -> str:
    group, artifact, version = coordinates.split(":")
    return (
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
    )
