"""Simulations of a node from seeds, and the same simulation under another hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.crash_points import SEEDS
from tests.simulation.node_run import run_seed

_ROOT = Path(__file__).parents[2]
_ONE = os.environ.get("MOLDAU_SIMULATION_SEED")


@pytest.mark.parametrize("seed", [int(_ONE)] if _ONE else range(24 * SEEDS))
def test_a_simulated_node_keeps_its_invariants(seed: int) -> None:
    assert run_seed(seed).trace.count > 100


def test_a_seed_replays_exactly_under_any_hash_seed() -> None:
    program = (
        "import logging; logging.disable(logging.CRITICAL)\n"
        "from tests.simulation.node_run import run_seed\n"
        "for seed in (3, 5):\n"
        "    trace = run_seed(seed).trace\n"
        "    print(trace.count, trace.digest())\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": str(_ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in ("1", "4242")
    ]
    outputs = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0].strip()
    assert outputs[0] == outputs[1]
