"""Scenario scripts for transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.script import check
from tests.scenarios.transaction_commands import TransactionCommands

SCRIPTS = sorted((Path(__file__).parent / "transactions").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_transactions(script: Path, tmp_path: Path) -> None:
    check(script, TransactionCommands(tmp_path).run)
