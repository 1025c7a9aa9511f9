"""Apache Kafka's jars: the tested versions, and their download with Maven into `.interop/`.

`KAFKA_LIBS` (and `KAFKA_CLIENTS_OLD_LIBS` for the older client, `KAFKA_STREAMS_LIBS` for Kafka Streams,
`KAFKA_STREAMS_TEST_LIBS` for it with its test driver, `KAFKA_MIRROR_LIBS` for MirrorMaker 2,
`KAFKA_CONNECT_LIBS` for Kafka Connect's worker, `SPARK_CONNECTOR_LIBS` for Spark's connector) name existing
folders; then nothing is downloaded. Maven's downloads stay in `.interop/`.
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
#: Spark's Kafka connector. Not every release is in every registry: these versions belong together and run
#: with the Spark version we use.
SPARK_CONNECTOR = "4.2.0"
#: Spark's Avro connector, for `from_avro`.
SPARK_AVRO = "4.0.1"

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
_SPARK_CONNECTOR_ARTIFACTS = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_CONNECTOR}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_MIRROR_ARTIFACTS = (
    f"org.apache.kafka:connect-mirror:{KAFKA}",
    f"org.apache.kafka:connect-json:{KAFKA}",
    # The worker's /admin/loggers needs Log4j.
    f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J}",
    f"org.apache.logging.log4j:log4j-core:{LOG4J}",
)
_CONNECT_ARTIFACTS = (
    f"org.apache.kafka:connect-runtime:{KAFKA}",
    f"org.apache.kafka:connect-file:{KAFKA}",
    f"org.apache.kafka:connect-json:{KAFKA}",
    # The worker's /admin/loggers needs Log4j.
    f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J}",
    f"org.apache.logging.log4j:log4j-core:{LOG4J}",
)
_STREAMS_TEST_ARTIFACTS = (f"org.apache.kafka:kafka-streams-test-utils:{KAFKA}", *_STREAMS_ARTIFACTS)

#: A sink connector for databases on Maven Central, with PostgreSQL's driver; Confluent's is not there.
DEBEZIUM_JDBC = "io.debezium:debezium-connector-jdbc:3.5.0.Final"

#: Servers that the connectors' tests start, whole distributions as archives.
OPENSEARCH = "org.opensearch.distribution.integ-test-zip:opensearch:2.19.0:zip"
ELASTICSEARCH = "org.elasticsearch.distribution.integ-test-zip:elasticsearch:7.17.0:zip"
#: A server that speaks MongoDB's protocol, and its only dependency.
MONGO_SERVER = "de.bwaldvogel:mongo-java-server:1.47.0"

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
    """A requirement that this machine does not meet; the message names it."""


def kafka_libs() -> Path:
    return _existing("KAFKA_LIBS") or _with_maven(f"kafka-{KAFKA}", _KAFKA_ARTIFACTS)


def old_client_libs() -> Path:
    return _existing("KAFKA_CLIENTS_OLD_LIBS") or _with_maven(
        f"kafka-clients-{OLD_CLIENT}", _OLD_CLIENT_ARTIFACTS
    )


def streams_libs() -> Path:
    return _existing("KAFKA_STREAMS_LIBS") or _with_maven(f"kafka-streams-{KAFKA}", _STREAMS_ARTIFACTS)


def spark_connector_jars() -> list[Path]:
    """Return Spark's Kafka connector and its dependencies, for `spark.jars`."""
    folder = _existing("SPARK_CONNECTOR_LIBS") or _each_alone(
        f"spark-connector-{SPARK_CONNECTOR}", _SPARK_CONNECTOR_ARTIFACTS
    )
    return sorted(folder.glob("*.jar"))


def spark_avro_jars() -> list[Path]:
    """Return Spark's Avro connector, for `spark.jars`."""
    artifacts = (f"org.apache.spark:spark-avro_2.13:{SPARK_AVRO}",)
    return sorted(_each_alone(f"spark-avro-{SPARK_AVRO}", artifacts).glob("*.jar"))


def mirror_libs() -> Path:
    """Return MirrorMaker 2 and its client."""
    return _existing("KAFKA_MIRROR_LIBS") or _with_maven(f"kafka-mirror-{KAFKA}", _MIRROR_ARTIFACTS)


def connect_libs() -> Path:
    """Return Kafka Connect's worker with the FileStream connectors."""
    return _existing("KAFKA_CONNECT_LIBS") or _with_maven(f"kafka-connect-log4j-{KAFKA}", _CONNECT_ARTIFACTS)


def debezium_jdbc_libs() -> Path:
    """Return Debezium's JDBC sink connector; `plugin.path` is the folder around it."""
    libs = _with_maven("debezium-jdbc", (DEBEZIUM_JDBC,), FOLDER / "plugins")
    # Modules that the worker's Jackson finds must be of the same class loader.
    for name in ("core", "databind", "annotations"):
        for each in libs.glob(f"jackson-{name}-*.jar"):
            each.unlink()
    return libs


def streams_test_libs() -> Path:
    """Return Kafka Streams with the test driver that runs a topology without a broker."""
    return _existing("KAFKA_STREAMS_TEST_LIBS") or _with_maven(
        f"kafka-streams-test-{KAFKA}", _STREAMS_TEST_ARTIFACTS
    )


def storage_test_jar() -> Path:
    """Return the jar with `LocalTieredStorage`, which is in Kafka's tests."""
    folder = _each_alone(f"kafka-storage-test-{KAFKA}", (f"org.apache.kafka:kafka-storage:{KAFKA}:jar:test",))
    return next(folder.glob("*.jar"))


def compiled(source: Path, libs: Path, version: str) -> Path:
    """Compile a Java file against the jars of a version; return the folder of its classes."""
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


def _with_maven(name: str, artifacts: tuple[str, ...], folder: Path = FOLDER) -> Path:
    """Download the artifacts with their dependencies."""
    libs = folder / name
    if (libs / "complete").exists():
        return libs
    libs.mkdir(parents=True, exist_ok=True)
    pom = libs / "pom.xml"
    pom.write_text(_POM.format(name=name, dependencies="\n".join(map(_dependency, artifacts))))
    _maven("copy-dependencies", "-f", str(pom), f"-DoutputDirectory={libs}")
    (libs / "complete").touch()
    return libs


def distribution(artifact: str) -> Path:
    """Download an archive and return its path."""
    name = artifact.split(":")[1]
    return next(_each_alone(f"{name}-distribution", (artifact,)).glob("*.zip"))


def mongo_server_libs() -> Path:
    return _with_maven("mongo-server", (MONGO_SERVER, f"org.slf4j:slf4j-nop:{SLF4J}"))


def _each_alone(name: str, artifacts: tuple[str, ...]) -> Path:
    """Download the artifacts without their dependencies."""
    libs = FOLDER / name
    if not (libs / "complete").exists():
        for artifact in artifacts:
            _maven("copy", f"-Dartifact={artifact}", f"-DoutputDirectory={libs}")
        (libs / "complete").touch()
    return libs


def _maven(goal: str, *options: str) -> None:
    if shutil.which("mvn") is None:
        raise Missing(
            "Maven is not installed (apt install maven), and KAFKA_LIBS names no folder with the jars"
        )
    command = ["mvn", "-q", "-B", f"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:{goal}", *options]
    brought = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if brought.returncode != 0:
        raise Missing(f"Maven could not download the jars: {brought.stdout[-1500:]}")


def _dependency(coordinates: str) -> str:
    group, artifact, version = coordinates.split(":")
    return (
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
    )
