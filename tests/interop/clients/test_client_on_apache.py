"""The integration tests of the Python client, run against Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.apache.node import ApacheCluster

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

CLIENT = Path(__file__).parents[2] / "integration" / "client"
FILES = sorted(path.name for path in CLIENT.glob("test_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_client_tests_pass_on_apache_kafka(name: str, apache: ApacheCluster) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CLIENT / name)],
        env={**os.environ, "MOLDAU_TEST_BOOTSTRAP": apache.bootstrap_servers},
        cwd=CLIENT.parents[2],
        capture_output=True,
        text=True,
        timeout=350,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
