"""`python -m benchmarks`: compare Moldau with Apache Kafka; the results are tables, JSON and a picture.

Both brokers run alternately for several rounds, with the same settings and clients. The tables show the
median and the spread of the rounds. Without Maven and Java only Moldau is measured. Without a C compiler and
the headers of librdkafka the program exits and names the packages to install.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import authorizer, coordination, metrics, picture, report, streams_groups, tiered, tls
from benchmarks.brokers import Software, apache, moldau
from benchmarks.clients import FOLDER, JavaClient, Librdkafka
from benchmarks.scale import logs
from benchmarks.workloads import Figures, Round
from tests.interop import jars

_DOCS = Path(__file__).parents[1] / "docs"
_QUICK = 0.1
#: Parts of a round that can be measured alone and merged into the rounds of an earlier run.
_PARTS = ("coordination", "streams-groups", "tls", "authorizer", "metrics", "tiered")


def main() -> int:
    options = _parser().parse_args()
    kept = _kept(options)
    if options.only != "report":
        librdkafka = Librdkafka()
        software, java = brokers()
        kept["machine"] = machine()
        if options.only in (None, "compare", *_PARTS):
            rounds = _rounds(options, librdkafka, software, java)
            kept["rounds"] = _merged(kept["rounds"], rounds) if options.only in _PARTS else rounds
        if options.only in (None, "scale") and not options.quick:
            kept["once"] = _scale(options, software)
        Path(options.json).write_text(json.dumps(kept, indent=2) + "\n")
    figures = report.compared(kept["rounds"]) if kept["rounds"] else {}
    tables = f"{kept['machine']}.\n\n{report.markdown(figures, kept['once'])}\n"
    print(tables)
    if options.publish:
        _publish(kept, figures, tables)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds per broker")
    parser.add_argument(
        "--quick", action="store_true", help="one round with a tenth of the load, without the scale workloads"
    )
    parser.add_argument(
        "--large",
        action="store_true",
        help="topics of 10 GB for tiered storage and the scale workloads, these also for Apache Kafka",
    )
    parser.add_argument(
        "--only",
        choices=["compare", *_PARTS, "scale", "report"],
        help="measure only this part, or nothing; take the rest from the JSON of an earlier run",
    )
    parser.add_argument("--json", default="benchmarks.json", help="file for the figures of all rounds")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="update the tables and the picture in docs/ (requires figures of Apache Kafka)",
    )
    return parser


def _kept(options: argparse.Namespace) -> dict[str, Any]:
    if options.only is None or not Path(options.json).exists():
        return {"machine": machine(), "rounds": {}, "once": {}}
    kept: dict[str, Any] = json.loads(Path(options.json).read_text())
    return kept


def brokers() -> tuple[list[Software], JavaClient | None]:
    if shutil.which("java") is None:
        _print_progress(
            "Measuring Moldau alone: Java is not installed (apt install default-jdk-headless maven)"
        )
        return [moldau()], None
    try:
        libs = jars.kafka_libs()
        return [moldau(), apache(libs, FOLDER)], JavaClient(libs)
    except jars.Missing as missing:
        _print_progress(f"Measuring Moldau alone: {missing}")
        return [moldau()], None


def _rounds(
    options: argparse.Namespace, librdkafka: Librdkafka, both: list[Software], java: JavaClient | None
) -> report.Rounds:
    count, share = (1, _QUICK) if options.quick else (options.rounds, 1.0)
    rounds: report.Rounds = {software.name: [] for software in both}
    for number in range(count):
        # The order alternates, so that neither always runs on a disk that the other has just filled.
        for software in both if number % 2 == 0 else reversed(both):
            begin = time.monotonic()
            figures: Figures = {}
            if options.only not in _PARTS:
                figures |= Round(librdkafka, java, share).measure(software)
            for part, measure in _measurements(software, librdkafka, share, options.large).items():
                if options.only in (None, "compare", part):
                    figures |= measure()
            rounds[software.name].append(figures)
            _print_progress(
                f"round {number + 1} of {count}: {software.name}, {time.monotonic() - begin:.0f} s"
            )
    return rounds


def _measurements(
    software: Software, librdkafka: Librdkafka, share: float, large: bool
) -> dict[str, Callable[[], Figures]]:
    """Return how each of the parts is measured."""

    def authorization() -> Figures:
        figures = authorizer.measure(software, librdkafka, share)
        return figures | authorizer.decisions() if software.name == "moldau" else figures

    return {
        "coordination": lambda: coordination.measure(software, share),
        "streams-groups": lambda: streams_groups.measure(software, share),
        "tls": lambda: tls.measure(software, librdkafka, share),
        "authorizer": authorization,
        "metrics": lambda: metrics.measure(software, librdkafka, share),
        "tiered": lambda: tiered.measure(software, share, large=large),
    }


def _merged(before: report.Rounds, now: report.Rounds) -> report.Rounds:
    """Merge new measurements into the rounds of an earlier run."""
    return {
        name: [
            (before.get(name, [])[number] if number < len(before.get(name, [])) else {}) | figures
            for number, figures in enumerate(rounds)
        ]
        for name, rounds in now.items()
    }


def _scale(options: argparse.Namespace, both: list[Software]) -> dict[str, Figures]:
    once = {}
    for software in both if options.large else both[:1]:
        _print_progress(f"scale: {software.name}")
        once[software.name] = logs.many_partitions(software)
        once[software.name] |= logs.long_topic(software, 10 if options.large else 1)
    return once


def _publish(kept: dict[str, Any], figures: dict[str, report.Compared], tables: str) -> None:
    if "apache" not in kept["rounds"]:
        sys.exit("Nothing is published: figures of Apache Kafka are missing.")
    subtitle = f"{kept['machine']}; median of {len(kept['rounds']['moldau'])} rounds, equal settings"
    (_DOCS / "benchmarks.svg").write_text(picture.svg(figures, subtitle))
    publish_tables("benchmark", tables)


def publish_tables(name: str, tables: str) -> None:
    """Replace the tables of `name` in docs/BENCHMARKS.md."""
    begin, end = f"<!-- begin: generated by the {name} -->\n", f"<!-- end: generated by the {name} -->\n"
    page = _DOCS / "BENCHMARKS.md"
    before, found, rest = page.read_text().partition(begin)
    if not found:
        sys.exit(f"{page} has no markers for the tables of the {name}.")
    page.write_text(f"{before}{begin}\n{tables}\n{end}{rest.partition(end)[2]}")


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


def _print_progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
