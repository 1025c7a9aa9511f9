"""`python -m benchmarks`: Moldau beside Apache Kafka, as tables with ratios, JSON and a picture.

Both brokers take turns with equal settings and the same clients, several rounds each; the median counts, and
the spread is shown. Without Maven and Java it measures Moldau alone and says so; without a C compiler and
librdkafka's headers it says what to install.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import coordination, picture, report, scale
from benchmarks.brokers import Software, apache, moldau
from benchmarks.clients import FOLDER, JavaClient, Librdkafka
from benchmarks.workloads import Figures, Round
from tests.interop import jars

_DOCS = Path(__file__).parents[1] / "docs"
_QUICK = 0.1


def main() -> int:
    options = _parser().parse_args()
    kept = _kept(options)
    if options.only != "report":
        librdkafka = Librdkafka()
        software, java = brokers()
        kept["machine"] = machine()
        if options.only in (None, "compare", "coordination"):
            rounds = _rounds(options, librdkafka, software, java)
            kept["rounds"] = _merged(kept["rounds"], rounds) if options.only == "coordination" else rounds
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
    parser.add_argument("--rounds", type=int, default=3, help="how often each broker has its turn")
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the load, no scale")
    parser.add_argument(
        "--large", action="store_true", help="scale: a topic of 10 GB, and Apache's figures too"
    )
    parser.add_argument(
        "--only",
        choices=["compare", "coordination", "scale", "report"],
        help="measure only a part, or nothing: the rest is taken from the JSON of an earlier run",
    )
    parser.add_argument("--json", default="benchmarks.json", help="where all figures of all rounds go")
    parser.add_argument(
        "--publish", action="store_true", help="put tables and picture into docs/ (needs Apache's figures)"
    )
    return parser


def _kept(options: argparse.Namespace) -> dict[str, Any]:
    if options.only is None or not Path(options.json).exists():
        return {"machine": machine(), "rounds": {}, "once": {}}
    kept: dict[str, Any] = json.loads(Path(options.json).read_text())
    return kept


def brokers() -> tuple[list[Software], JavaClient | None]:
    if shutil.which("java") is None:
        _say("Measuring Moldau alone: Java is not installed (apt install default-jdk-headless maven)")
        return [moldau()], None
    try:
        libs = jars.kafka_libs()
        return [moldau(), apache(libs, FOLDER)], JavaClient(libs)
    except jars.Missing as missing:
        _say(f"Measuring Moldau alone: {missing}")
        return [moldau()], None


def _rounds(
    options: argparse.Namespace, librdkafka: Librdkafka, both: list[Software], java: JavaClient | None
) -> report.Rounds:
    count, share = (1, _QUICK) if options.quick else (options.rounds, 1.0)
    rounds: report.Rounds = {software.name: [] for software in both}
    for number in range(count):
        # Who comes first changes, so that neither always has the disk that the other has just filled.
        for software in both if number % 2 == 0 else reversed(both):
            begin = time.monotonic()
            figures: Figures = {}
            if options.only != "coordination":
                figures |= Round(librdkafka, java, share).measure(software)
            rounds[software.name].append(figures | coordination.measure(software, share))
            _say(f"round {number + 1} of {count}: {software.name}, {time.monotonic() - begin:.0f} s")
    return rounds


def _merged(before: report.Rounds, now: report.Rounds) -> report.Rounds:
    """What was measured now, put into the rounds of an earlier run."""
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
        _say(f"scale: {software.name}")
        once[software.name] = scale.many_partitions(software)
        once[software.name] |= scale.long_topic(software, 10 if options.large else 1)
    return once


def _publish(kept: dict[str, Any], figures: dict[str, report.Compared], tables: str) -> None:
    if "apache" not in kept["rounds"]:
        sys.exit("Nothing is published: there are no figures of Apache Kafka beside Moldau's.")
    subtitle = f"{kept['machine']}; median of {len(kept['rounds']['moldau'])} rounds, equal settings"
    (_DOCS / "benchmarks.svg").write_text(picture.svg(figures, subtitle))
    publish_tables("benchmark", tables)


def publish_tables(name: str, tables: str) -> None:
    """Put tables where the page keeps a place for those of `name`."""
    begin, end = f"<!-- begin of what the {name} wrote -->\n", f"<!-- end of what the {name} wrote -->\n"
    page = _DOCS / "BENCHMARKS.md"
    before, found, rest = page.read_text().partition(begin)
    if not found:
        sys.exit(f"{page} has no place for the tables of the {name}.")
    page.write_text(f"{before}{begin}\n{tables}\n{end}{rest.partition(end)[2]}")


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
