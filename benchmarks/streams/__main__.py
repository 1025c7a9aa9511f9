"""`python -m benchmarks.streams`: the same programs in Kafka Streams, in the streams API and in SQL.

All run exactly once on one broker of Moldau, on the same machine, in turns: every program runs in each system
before the next program does, and the order of the systems changes with every program. The results for a small
input must be equal before anything is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.__main__ import machine, publish_tables
from benchmarks.brokers import Broker, moldau
from benchmarks.report import number
from benchmarks.streams.inputs import PROGRAMS, Program
from benchmarks.streams.measures import (
    CONTINUE,
    CPU,
    MEMORY,
    RATES,
    RECORDS,
    START,
    Figures,
    Life,
    growth,
    growth_names,
    latency_name,
    measured,
)
from benchmarks.streams.systems import API, JAVA, SQL, System, systems

_KEYS = (10_000, 100_000, 1_000_000)
#: Their state is kept by Spark, and by Python.
_GROWING = ("windows", "totals")
LIVES, GROWTH = "programs", "state"
#: Programs whose state Python keeps.
_PYTHON_STATE = ("lookup", "totals")
_SHOWN = (
    RECORDS,
    CPU,
    *(latency_name(quantile, rate) for rate in RATES for quantile in ("p50", "p99")),
    MEMORY,
    START,
    CONTINUE,
)

#: Figures by program, system and round.
Results = dict[str, dict[str, list[Figures]]]


class _Aim(NamedTuple):
    figure: str
    bound: str
    programs: Sequence[str]


def main() -> int:
    options = _parser().parse_args()
    share = 0.1 if options.quick else 1.0
    results: Results = json.loads(Path(options.json).read_text())["results"] if options.keep else {}
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder, Broker(moldau()) as broker:
        broker.first_start()
        for turn, (program, system, keys) in enumerate(_turns(options)):
            begin = time.monotonic()
            life = Life(system, program, broker.bootstrap, Path(folder) / str(turn), f"bench-{turn}")
            if keys:
                figures = growth(life, keys, share)
            else:
                figures = measured(life, share, _comparison(program, system))
            kept = results.setdefault(program.name, {}).setdefault(system.name, [])
            _keep(kept, figures)
            shutil.rmtree(Path(folder) / str(turn), ignore_errors=True)
            shown = ", ".join(f"{name} {number(value)}" for name, value in figures.items())
            print(
                f"{program.title}, {system.name}, {time.monotonic() - begin:.0f} s: {shown}",
                file=sys.stderr,
                flush=True,
            )
            _write(options.json, results)
    tables = f"{machine()}.\n\n{markdown(results)}\n"
    print(tables)
    if options.publish:
        publish_tables("streams", tables)
    return 0


def _turns(options: argparse.Namespace) -> Iterator[tuple[Program, System, int]]:
    wanted = options.only.split(",") if options.only else []
    chosen = [one for one in PROGRAMS if not wanted or one.name in wanted]
    sides = [one for one in systems() if not options.systems or one.name in options.systems.split(",")]
    for turn in range(0 if options.part == GROWTH else 1 if options.quick else options.rounds):
        for place, program in enumerate(chosen):
            for system in sides if (turn + place) % 2 == 0 else reversed(sides):
                yield program, system, 0
    if options.part != LIVES:
        for program in chosen:
            for keys in _KEYS if program.name in _GROWING else ():
                # SQL computes aggregates of tables again for every batch.
                for system in sides:
                    if (program.name, system.name) != ("totals", SQL):
                        yield program, system, keys


def _comparison(program: Program, system: System) -> Any:
    def compare(contents: Any) -> None:
        first = _first_results.setdefault(program.name, contents)
        if contents != first:
            counts = f"{len(contents)} instead of {len(first)}: {_differing(first, contents)}"
            sys.exit(f"{system.name} has other results of {program.name} than the first system, {counts}")

    return compare


def _differing(one: Any, other: Any) -> list[Any]:
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    return [(key, one.get(key), other.get(key)) for key in keys[:3]]


_first_results: dict[str, Any] = {}


def _keep(kept: list[Figures], figures: Figures) -> None:
    """Add a round; figures of the growth belong to the first one."""
    if kept and RECORDS not in figures:
        kept[0] |= figures
    else:
        kept.append(figures)


def _write(file: str, results: Results) -> None:
    Path(file).write_text(json.dumps({"machine": machine(), "results": results}, indent=2) + "\n")


def markdown(results: Results) -> str:
    titles = {one.name: one.title for one in PROGRAMS}
    sections = []
    for name, by_system in results.items():
        rows = list(_rows(by_system, _SHOWN))
        if rows:
            sections.append(f"### {titles[name].capitalize()}\n\n{_table(list(by_system), rows)}")
    grown = [
        (f"{titles[name]}, {figure}", by_system)
        for name, by_system in results.items()
        for keys in _KEYS
        for figure in growth_names(keys)
        if any(figure in one for rounds in by_system.values() for one in rounds)
    ]
    if grown:
        rows = [
            (title, {system: _median(rounds, title.rpartition(", ")[2]) for system, rounds in by.items()})
            for title, by in grown
        ]
        sections.append(f"### Size of the state\n\n{_table([JAVA, API, SQL], rows)}")
    sections.append(f"### Aims\n\n{_aims(results)}")
    return "\n\n".join(sections)


def _rows(
    by_system: dict[str, list[Figures]], names: Iterable[str]
) -> Iterator[tuple[str, dict[str, float]]]:
    for name in names:
        found = {system: _median(rounds, name) for system, rounds in by_system.items()}
        if any(not math.isnan(each) for each in found.values()):
            yield name, found


def _median(rounds: Sequence[Figures], name: str) -> float:
    values = [each[name] for each in rounds if name in each and not math.isnan(each[name])]
    return statistics.median(values) if values else math.nan


def _table(names: Sequence[str], rows: Iterable[tuple[str, dict[str, float]]]) -> str:
    ordered = [name for name in (JAVA, API, SQL) if name in names]
    lines = [f"| | {' | '.join(ordered)} |", f"|---|{'---|' * len(ordered)}"]
    for title, found in rows:
        base = found.get(JAVA, math.nan)
        cells = [_cell(found.get(system, math.nan), base, system) for system in ordered]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float, base: float, system: str) -> str:
    if math.isnan(value):
        return ""
    if system == JAVA or math.isnan(base) or not base:
        return number(value)
    return f"{number(value)} (**{value / base:.2f}**)"


def _aims(results: Results) -> str:
    lines = ["| streams API | aim | measured | |", "|---|---|---|---|"]
    for program in PROGRAMS:
        by_system = results.get(program.name, {})
        ours, java = by_system.get(API, []), by_system.get(JAVA, [])
        if math.isnan(_median(ours, RECORDS)) or math.isnan(_median(java, RECORDS)):
            continue
        least = 0.5 if program.name in _PYTHON_STATE else 1.0
        speed = _median(ours, RECORDS) / _median(java, RECORDS)
        p50 = _median(ours, latency_name("p50", RATES[0]))
        memory = _median(ours, MEMORY) / _median(java, MEMORY)
        again, java_again = _median(ours, CONTINUE), _median(java, CONTINUE)
        for what, aim, shown, met in (
            (RECORDS, f"at least {least:g} of Kafka Streams", f"{speed:.2f}", speed >= least),
            (latency_name("p50", RATES[0]), "at most 250", f"{p50:.0f}", p50 <= 250),
            (MEMORY, "at most 1.5 of Kafka Streams", f"{memory:.2f}", memory <= 1.5),
            (CONTINUE, f"less than Kafka Streams, {java_again:.1f}", f"{again:.1f}", again < java_again),
        ):
            verdict = "met" if met else "**not met**"
            lines.append(f"| {program.title}: {what} | {aim} | {shown} | {verdict} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds")
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the records")
    parser.add_argument("--only", help="measure only these programs, separated by commas")
    parser.add_argument("--systems", help="measure only these systems, separated by commas")
    parser.add_argument("--part", choices=[LIVES, GROWTH], help="measure the programs, or sizes of the state")
    parser.add_argument("--keep", action="store_true", help="add to the figures of the file")
    parser.add_argument("--json", default="benchmarks-streams.json", help="file for all figures")
    parser.add_argument("--publish", action="store_true", help="update the tables in docs/BENCHMARKS.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
