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

from tests.interop import jars

from benchmarks import picture, report, scale
from benchmarks.brokers import Software, apache, moldau
from benchmarks.clients import FOLDER, JavaClient, Librdkafka
from benchmarks.workloads import Figures, Round

_PICTURE = Path(__file__).parents[1] / "docs" / "benchmarks.svg"
_QUICK = 0.1


def main() -> int:
    options = _parser().parse_args()
    librdkafka = Librdkafka()
    brokers, java = _brokers()
    rounds: report.Rounds = {}
    once: dict[str, Figures] = {}
    if options.only != "scale":
        rounds = _rounds(options, librdkafka, brokers, java)
    if options.only != "compare" and not options.quick:
        for software in brokers if options.large else brokers[:1]:
            _say(f"scale: {software.name}")
            once[software.name] = scale.many_partitions(software)
            once[software.name] |= scale.long_topic(software, 10 if options.large else 1)
    _write(options, rounds, once)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each broker has its turn")
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the load, no scale")
    parser.add_argument(
        "--large", action="store_true", help="scale: a topic of 10 GB, and Apache's figures too"
    )
    parser.add_argument("--only", choices=["compare", "scale"], help="one half of the measurements")
    parser.add_argument("--json", default="benchmarks.json", help="where all figures of all rounds go")
    parser.add_argument("--picture", type=Path, help=f"draw the picture there ({_PICTURE.name} in docs/)")
    return parser


def _brokers() -> tuple[list[Software], JavaClient | None]:
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
    options: argparse.Namespace, librdkafka: Librdkafka, brokers: list[Software], java: JavaClient | None
) -> report.Rounds:
    count, share = (1, _QUICK) if options.quick else (options.rounds, 1.0)
    rounds: report.Rounds = {software.name: [] for software in brokers}
    for number in range(count):
        # Who comes first changes, so that neither always has the disk that the other has just filled.
        for software in brokers if number % 2 == 0 else reversed(brokers):
            begin = time.monotonic()
            rounds[software.name].append(Round(librdkafka, java, share).measure(software))
            _say(f"round {number + 1} of {count}: {software.name}, {time.monotonic() - begin:.0f} s")
    return rounds


def _write(options: argparse.Namespace, rounds: report.Rounds, once: dict[str, Figures]) -> None:
    kept: dict[str, Any] = {"machine": _machine(), "rounds": rounds, "once": once}
    Path(options.json).write_text(json.dumps(kept, indent=2) + "\n")
    figures = report.compared(rounds) if rounds else {}
    print(f"{_machine()}.\n\n{report.markdown(figures, once)}")
    if options.picture is not None and "apache" in rounds:
        subtitle = f"One run on {_machine()}; median of {len(rounds['moldau'])} rounds, equal settings"
        options.picture.write_text(picture.svg(figures, subtitle))


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
