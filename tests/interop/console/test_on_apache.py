"""The tests of the web console pass against Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CONSOLE = Path(__file__).parents[2] / "integration" / "console"


@pytest.mark.parametrize("module", ["test_stories.py", "test_http.py", "test_services.py"])
def test_the_console_shows_and_changes_apache_kafka(module: str, libs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CONSOLE / module)],
        env={**os.environ, "MOLDAU_TEST_BROKER": "apache", "KAFKA_LIBS": str(libs)},
        cwd=CONSOLE.parents[2],
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
