"""Scenarios of Raft: elections, replication, snapshots, voter changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.raft_commands import RaftCommands
from tests.scenarios.script import check

SCRIPTS = sorted((Path(__file__).parent / "raft").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_raft(script: Path) -> None:
    check(script, RaftCommands().run)
