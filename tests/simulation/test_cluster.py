"""Simulations of clusters from seeds, and the same simulation under another hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.cluster.run import run_seed
from tests.simulation.crash_points import SEEDS
from tests.simulation.simulate import run_seeds

_ROOT = Path(__file__).parents[2]
_ONE = os.environ.get("MOLDAU_SIMULATION_SEED")
_BLOCK = 20
#: Seeds of past failures, with the bug found. Simulations change with the code; the bugs are
#: also tested as scenarios (`test_cluster_scenarios`).
FOUND = {
    36: "followers ignored flush.messages",
    70: "a node with a full disk could not be stopped",
    100: "a follower whose disk was full while the leader changed never fetched again",
}


@pytest.mark.skipif(_ONE is None, reason="replays one simulation: MOLDAU_SIMULATION_SEED")
def test_requested_seed() -> None:
    run_seed(int(_ONE or 0))


@pytest.mark.parametrize("first", range(0, 60 * SEEDS, _BLOCK))
def test_a_simulated_cluster_keeps_its_invariants(first: int) -> None:
    outcomes = list(run_seeds("cluster", range(first, first + _BLOCK), jobs=2))
    assert not [outcome for outcome in outcomes if outcome.failure is not None]
    assert sum(outcome.counts["acknowledged"] for outcome in outcomes) > 100


def test_members_of_a_streams_group_settle_after_every_fault() -> None:
    counts = Counter[str]()
    for seed in range(3 * SEEDS):
        counts.update(run_seed(f"streams/{seed}", streams=True, secured=False).history.counts)
    assert counts["streams assignments"] > 30


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_of_past_failures(seed: int) -> None:
    run_seed(seed)


def test_a_cluster_seed_replays_exactly_under_any_hash_seed() -> None:
    program = (
        "import logging; logging.disable(logging.CRITICAL)\n"
        "from tests.simulation.cluster.run import run_seed\n"
        "for seed in (3, 11):\n"
        "    trace = run_seed(seed).simulation.trace\n"
        "    print(trace.count, trace.digest())\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in ("1", "4242")
    ]
    outputs = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0].strip()
    assert outputs[0] == outputs[1]
