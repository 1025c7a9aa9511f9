"""Scenario scripts for consumer lag."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.lag_world import LagWorld
from tests.scenarios.script import check

SCRIPTS = sorted((Path(__file__).parent / "lag").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_lag(script: Path) -> None:
    check(script, LagWorld().run)
