"""The tests of pipelines pass against Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PIPELINES = Path(__file__).parents[2] / "pipelines"
AREAS = sorted({path.parent.name for path in PIPELINES.glob("*/test_*.py")})


@pytest.mark.parametrize("area", AREAS)
def test_pipelines_pass_on_apache_kafka(area: str, libs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PIPELINES / area)],
        env={**os.environ, "MOLDAU_TEST_BROKER": "apache", "KAFKA_LIBS": str(libs)},
        cwd=PIPELINES.parents[1],
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
