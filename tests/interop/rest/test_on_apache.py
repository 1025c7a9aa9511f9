"""The integration tests of the REST proxy, run with Apache Kafka as its cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.apache.node import ApacheCluster

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

TESTS = Path(__file__).parents[2] / "integration" / "rest"
FILES = sorted(path.name for path in TESTS.glob("test_v[23]_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_the_proxy_works_with_apache_kafka(name: str, apache: ApacheCluster) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / name)],
        env={**os.environ, "MOLDAU_TEST_BOOTSTRAP": apache.bootstrap_servers},
        cwd=TESTS.parents[2],
        capture_output=True,
        text=True,
        timeout=350,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
