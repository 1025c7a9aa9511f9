"""Simulations from many seeds in several processes: `make simulate SEEDS=2000 JOBS=2`.

    python -m tests.simulation.simulate --seeds 200 --jobs 2 [--first 0] [--kind cluster]
    python -m tests.simulation.simulate --seed 17 [--kind cluster]     one simulation, with the nodes' logs

Kinds: `cluster` (real nodes, clients and faults), `quorum` (Raft state machines only), `node`
(one node and its disk), `tiered` (a cluster and an object store). Every failing seed is printed with
the command that replays it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from tests.simulation import node_run
from tests.simulation.cluster import run as cluster_run
from tests.simulation.quorum.world import simulate as simulate_quorum
from tests.simulation.tiered import run as tiered_run

_MAX_LENGTH = 600


class Outcome(NamedTuple):
    seed: int
    #: None: no invariant was violated.
    failure: str | None
    counts: dict[str, int]


def _quorum(seed: int) -> dict[str, int]:
    world = simulate_quorum(seed)
    return {"committed": len(world.invariants.committed), "acknowledged": len(world.acknowledged)}


def _node(seed: int) -> dict[str, int]:
    return {"events": node_run.run_seed(seed).trace.count}


def _cluster(seed: int) -> dict[str, int]:
    run = cluster_run.run_seed(seed)
    return {**run.history.counts, "faults": len(run.faults.happened)}


def _tiered(seed: int) -> dict[str, int]:
    run = tiered_run.run_seed(seed)
    return {**run.history.counts, **run.service.counts}


KINDS: dict[str, Callable[[int], dict[str, int]]] = {
    "cluster": _cluster,
    "quorum": _quorum,
    "node": _node,
    "tiered": _tiered,
}


def run_seed(kind: str, seed: int) -> Outcome:
    logging.disable(logging.CRITICAL)
    try:
        return Outcome(seed, None, KINDS[kind](seed))
    except Exception as error:
        return Outcome(seed, f"{type(error).__name__}: {str(error)[:_MAX_LENGTH]}", {})


def run_seeds(kind: str, seeds: range, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes in the order in which the simulations end."""
    if jobs == 1:
        yield from (run_seed(kind, seed) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_seed, [kind] * len(seeds), seeds)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--kind", choices=list(KINDS), default="cluster")
    arguments.add_argument("--seeds", type=int, default=200)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--seed", type=int, default=None)
    options = arguments.parse_args()
    if options.seed is not None:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
        print(KINDS[options.kind](options.seed))
        return 0
    begin = time.monotonic()
    failed, total = [], Counter[str]()
    for outcome in run_seeds(options.kind, range(options.first, options.first + options.seeds), options.jobs):
        total.update(outcome.counts)
        if outcome.failure is not None:
            failed.append(outcome.seed)
            print(f"seed {outcome.seed}: {outcome.failure}")
            print(f"    to replay: make simulate KIND={options.kind} SEED={outcome.seed}", flush=True)
    took = time.monotonic() - begin
    print(
        f"{options.seeds} simulations of a {options.kind}, {len(failed)} failed; "
        f"{options.seeds / took:.1f} seeds/s"
    )
    print(", ".join(f"{name} {count:,}" for name, count in sorted(total.items())))
    if failed:
        print(f"failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
