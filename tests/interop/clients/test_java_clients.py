"""The Java client, in the broker's version and in the older one that Spark uses: one program, many checks."""

from __future__ import annotations

import functools
import re
import subprocess
import threading
from pathlib import Path

import pytest

from tests.harness.apache.node import ApacheCluster
from tests.interop import jars
from tests.interop.conftest import Node

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parents[1] / "java" / "MoldauClients.java"

#: The names of the checks in the program.
CHECKS = [
    *(f"codec-{codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    *(f"acks-{acks}" for acks in ("0", "1", "all")),
    *re.findall(r'checks\.put\("([a-z-]+)",', SOURCE.read_text()),
]


class Results:
    """The result of every check; the program runs once per client version and broker."""

    def __init__(self, version: str, bootstrap: str) -> None:
        self.answers: dict[str, str] = {}
        self.otherwise = "the program ended before this check"
        libs = jars.kafka_libs() if version == jars.KAFKA else jars.old_client_libs()
        try:
            classes = jars.compiled(SOURCE, libs, version)
        except subprocess.CalledProcessError as error:
            self.otherwise = f"it does not compile: {error.stderr}"
            return
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx400m"]
        command = ["java", *options, "-cp", f"{classes}:{libs}/*", SOURCE.stem, bootstrap]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as program:
            deadline = threading.Timer(150, program.kill)
            deadline.start()
            for line in program.stdout or ():
                verdict, _, rest = line.strip().partition(" ")
                if verdict in ("PASS", "FAIL"):
                    check, _, reason = rest.partition(" ")
                    self.answers[check] = reason or verdict
            deadline.cancel()


@functools.cache
def results(version: str, bootstrap: str) -> Results:
    return Results(version, bootstrap)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("version", [jars.KAFKA, jars.OLD_CLIENT])
@pytest.mark.parametrize("broker", ["apache", "moldau"])
def test_java_client(broker: str, version: str, check: str, request: pytest.FixtureRequest) -> None:
    node: Node | ApacheCluster = request.getfixturevalue(broker)
    try:
        answers = results(version, node.bootstrap_servers)
    except jars.Missing as missing:
        pytest.skip(str(missing))
    assert answers.answers.get(check, answers.otherwise) == "PASS"
