"""`python -m benchmarks`: prints a table of figures with ratios, and writes them as JSON.

Both brokers take turns, several rounds each, and the median counts. The load comes from librdkafka in C
(`load.c`, compiled here), because Python clients are too slow to see the broker. Without Maven and Java it
measures Moldau alone and says so; without a C compiler and librdkafka's headers it cannot measure.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from tests.harness.apache import ApacheCluster
from tests.interop import jars

from benchmarks.processes import cpu_seconds, resident_megabytes
from moldau.testing import Cluster

FOLDER = Path(__file__).parents[1] / ".interop" / "bench"
SOURCE = Path(__file__).with_name("load.c")

#: name, record size, records, librdkafka settings
PRODUCE = [
    ("produce 100 B, acks=1", 100, 2_000_000, ["request.required.acks=1"]),
    ("produce 100 B, acks=all", 100, 2_000_000, ["request.required.acks=-1"]),
    ("produce 1 KiB, acks=1", 1024, 400_000, ["request.required.acks=1"]),
    (
        "produce 100 B, linger 0",
        100,
        100_000,
        ["request.required.acks=1", "linger.ms=0", "batch.num.messages=1"],
    ),
]

Node = Cluster | ApacheCluster
Figures = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each broker has its turn")
    parser.add_argument("--json", default="benchmarks.json", help="where the figures go")
    options = parser.parse_args()
    if shutil.which("gcc") is None:
        sys.exit("The load generator needs a C compiler and librdkafka (apt install gcc librdkafka-dev).")
    brokers: dict[str, Callable[[], Node]] = {"moldau": Cluster}
    try:
        libs = jars.kafka_libs()
        brokers["apache"] = lambda: ApacheCluster(libs=libs, heap="1g", options=())
    except jars.Missing as missing:
        print(f"Measuring Moldau alone: {missing}")
    load = _compile()
    rounds: dict[str, list[Figures]] = {name: [] for name in brokers}
    for number in range(options.rounds):
        for name, start in brokers.items():
            print(f"round {number + 1} of {options.rounds}: {name}", flush=True)
            rounds[name].append(_measure(start, load))
    medians = {name: _medians(figures) for name, figures in rounds.items()}
    Path(options.json).write_text(json.dumps(medians, indent=2) + "\n")
    print(_table(medians))
    return 0


def _compile() -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = FOLDER / "load"
    subprocess.run(["gcc", "-O2", "-o", str(program), str(SOURCE), "-lrdkafka"], check=True)
    return program


def _measure(start: Callable[[], Node], load: Path) -> Figures:
    figures: Figures = {}
    begin = time.monotonic()
    with start() as node:
        _create(node, "first", 1)
        _run(load, "produce", node, "first", 1, 100)
        figures["format to first acknowledged record, s"] = time.monotonic() - begin
        figures["resident memory idle, MB"] = resident_megabytes(node.pid)
        for name, size, count, settings in PRODUCE:
            topic = name.replace(" ", "-").replace(",", "").replace("=", "-")
            _create(node, topic, 1)
            cpu = cpu_seconds(node.pid)
            outcome = _run(load, "produce", node, topic, count, size, *settings)
            figures[f"{name}, records/s"] = outcome["records_per_s"]
            figures[f"{name}, CPU s per M records"] = (cpu_seconds(node.pid) - cpu) / count * 1e6
            if "acks=1" in name:
                cpu = cpu_seconds(node.pid)
                outcome = _run(load, "consume", node, topic, count, size)
                figures[f"consume {size} B, records/s"] = outcome["records_per_s"]
                figures[f"consume {size} B, CPU s per M records"] = (
                    (cpu_seconds(node.pid) - cpu) / count * 1e6
                )
        _create(node, "latency", 1)
        settings = ["request.required.acks=-1", "linger.ms=0"]
        outcome = _run(load, "latency", node, "latency", 3000, 100, "500", *settings)
        for name in ("p50", "p99", "p999"):
            figures[f"end to end at 500/s, {name} ms"] = outcome[f"{name}_ms"]
        figures["resident memory after load, MB"] = resident_megabytes(node.pid)
    return figures


def _create(node: Node, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(30)


def _run(load: Path, kind: str, node: Node, topic: str, count: int, size: int, *rest: str) -> Figures:
    command = [str(load), kind, node.bootstrap_servers, topic, "1", str(count), str(size), *rest]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        sys.exit(f"the load generator failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _medians(rounds: list[Figures]) -> Figures:
    return {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}


def _table(medians: dict[str, Figures]) -> str:
    apache = medians.get("apache", {})
    lines = ["| | Moldau | Apache Kafka 4.3 | ratio |", "|---|---|---|---|"]
    for name, value in medians["moldau"].items():
        other = apache.get(name)
        compared = f"| {_number(other)} | {value / other:.2f} |" if other else "| | |"
        lines.append(f"| {name} | {_number(value)} {compared}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
