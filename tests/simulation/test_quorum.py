"""Hundreds of simulated quorums from seeds, with an unreliable network and crashing nodes."""

from __future__ import annotations

import os

import pytest

from tests.simulation.crash_points import SEEDS
from tests.simulation.quorum.world import simulate

_ONE = os.environ.get("MOLDAU_SIMULATION_SEED")
_BLOCK = 20


@pytest.mark.parametrize("first", [int(_ONE)] if _ONE else range(0, 300 * SEEDS, _BLOCK))
def test_a_simulated_quorum_keeps_its_invariants(first: int) -> None:
    committed = sum(
        len(simulate(seed).invariants.committed) for seed in range(first, first + (1 if _ONE else _BLOCK))
    )
    assert committed > 0
