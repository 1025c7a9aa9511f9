"""Kafka's own share consumer and tools about share groups, on Moldau as on Apache Kafka."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from tests.harness.apache import ApacheCluster
from tests.interop import jars
from tests.interop.conftest import Node

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "ShareConsumers.java"
CHECKS = re.findall(r'checks\.put\("([a-z-]+)",', SOURCE.read_text())


@functools.cache
def answers(bootstrap: str) -> dict[str, str]:
    """What the program said of every check; it runs once per broker."""
    libs = jars.kafka_libs()
    classes = jars.compiled(SOURCE, libs, jars.KAFKA)
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx400m"]
    command = ["java", *options, "-cp", f"{classes}:{libs}/*", SOURCE.stem, bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    found = {}
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        if verdict in ("PASS", "FAIL"):
            check, _, reason = rest.partition(" ")
            found[check] = reason or verdict
    return found


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("broker", ["apache", "moldau"])
def test_share_consumer(broker: str, check: str, request: pytest.FixtureRequest) -> None:
    node: Node | ApacheCluster = request.getfixturevalue(broker)
    assert answers(node.bootstrap_servers).get(check, "it did not get that far") == "PASS"
