"""`python -m benchmarks.services`: measure the schema registry and the REST proxy, beside recorded figures.

Every round has new brokers and services. The load comes from wrk. Schema registry and broker share the
machine with it, as did the others when they were recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks import report
from benchmarks.__main__ import machine, publish_tables
from benchmarks.services import recorded, registry, rest
from benchmarks.services.wrk import require_wrk
from benchmarks.workloads import Figures

_PARTS = {"registry": registry.measure, "rest": rest.measure}
_PEERS = {"Confluent 8.5, recorded": recorded.CONFLUENT, "Karapace 6.2, recorded": recorded.KARAPACE}


def main() -> int:
    options = _parser().parse_args()
    require_wrk()
    rounds = [_round(options, number + 1) for number in range(1 if options.quick else options.rounds)]
    Path(options.json).write_text(json.dumps({"machine": machine(), "rounds": rounds}, indent=2) + "\n")
    tables = f"{machine()}.\n\n{_markdown(rounds)}\n"
    print(tables)
    if options.publish:
        publish_tables("services", tables)
    return 0


def _round(options: argparse.Namespace, number: int) -> Figures:
    figures: Figures = {}
    for name, measure in _PARTS.items():
        if options.only in (None, name):
            begin = time.monotonic()
            figures |= measure(1 if options.quick else 3, 0.1 if options.quick else 1.0)
            print(f"round {number}: {name}, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return figures


def _markdown(rounds: list[Figures]) -> str:
    beside = [report.compared({"moldau": rounds, "apache": [figures]}) for figures in _PEERS.values()]
    sections = [
        ("### Requests, memory, start", _table(beside)),
        ("### Aims", report.aims_table(beside[0], recorded.AIMS, next(iter(_PEERS)))),
        ("### Limits", report.limits_table(beside[0], recorded.LIMITS)),
    ]
    return "\n\n".join(f"{title}\n\n{table}" for title, table in sections if table)


def _table(beside: list[dict[str, report.Compared]]) -> str:
    """Return a row a figure: ours, then each peer's recorded one and the ratio to it."""
    lines = []
    for name in beside[0]:
        ours, *peers = (report.cells(figures[name]) for figures in (beside[0], *beside))
        lines.append(f"| {' | '.join([name, ours[0], *(cell for peer in peers for cell in peer[1:])])} |")
    head = f"| | Moldau | {' | '.join(f'{peer} | ratio' for peer in _PEERS)} |"
    return "\n".join([head, "|---" * (2 + 2 * len(_PEERS)) + "|", *lines])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.services", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds")
    parser.add_argument("--quick", action="store_true", help="one round with short loads")
    parser.add_argument("--only", choices=list(_PARTS), help="measure only this service")
    parser.add_argument("--json", default="benchmarks-services.json", help="file for all figures")
    parser.add_argument("--publish", action="store_true", help="update the tables in docs/BENCHMARKS.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
