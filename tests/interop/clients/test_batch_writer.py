"""Batches of our own making on Apache Kafka: the tests of the writer, with nodes of its own wherever one is
killed, is set up differently, or has transactions of an older version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

TESTS = Path(__file__).parents[2] / "integration" / "client" / "test_batch_writer.py"
#: Those that start a node; the others run in `test_client_on_apache`.
STARTING = ("killed", "second_version", "missing_is_asked_for")


@pytest.mark.parametrize("broker", ["moldau", "apache"])
def test_on_nodes_of_its_own(broker: str, libs: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"),
            *("-k", " or ".join(STARTING), str(TESTS)),
        ],
        env={**os.environ, "MOLDAU_TEST_BROKER": broker},
        cwd=TESTS.parents[3],
        capture_output=True,
        text=True,
        timeout=350,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout and " skipped" not in done.stdout
