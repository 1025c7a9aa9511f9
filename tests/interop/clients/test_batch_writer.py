"""The tests of the batch writer that start a node (because it is killed, configured differently, or uses an
older transaction version), on Moldau and on Apache Kafka."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

TESTS = Path(__file__).parents[2] / "integration" / "client" / "test_batch_writer.py"
#: The tests that start a node; the others run in `test_client_on_apache`.
STARTING = re.findall(r"^def (test_\w+)\([^)]*\bstart_node\b", TESTS.read_text(), re.MULTILINE)


@pytest.mark.parametrize("broker", ["moldau", "apache"])
def test_batch_writer_passes_on_its_own_nodes(broker: str, libs: Path) -> None:
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
