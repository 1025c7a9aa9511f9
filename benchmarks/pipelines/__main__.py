"""`python -m benchmarks.pipelines`: compare Moldau's Spark connector with Spark's own, on a Moldau broker.

Both run alternately: a new process with its own session runs all jobs (`benchmarks/pipelines/jobs.py`) and
prints the results. Moldau's side uses `moldau.pipelines.session`, the other one Spark's defaults with the
jars of the connector; cores and memory are the same. Reading Parquet natively is measured as an upper bound.
The copy from topic to topic is exactly-once on Moldau's side and at-least-once on the other, which offers no
more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from benchmarks import report
from benchmarks.__main__ import machine, publish_tables
from benchmarks.clients import Librdkafka
from benchmarks.pipelines.jobs import (
    BATCH,
    BATCH_LARGE,
    COPY,
    FIRST_ROW,
    START,
    STREAM,
    Inputs,
    latency_name,
)
from benchmarks.processes import peak_of, unshared_megabytes
from benchmarks.workloads import CPU, RECORDS, Figures
from moldau.client import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster
from tests.interop import jars

PEER = "official connector"
_PARTITIONS = 4
_MEMORY = "memory, driver and workers, shared pages once, at most, MB"
_JOB_SECONDS = 540

AIMS = (
    report.Aim(f"{BATCH}: {RECORDS}", 1.5, True),
    report.Aim(f"{BATCH_LARGE}: {RECORDS}", 1.5, True),
    report.Aim(f"{STREAM}: {RECORDS}", 1.2, True),
    report.Aim(f"{COPY}: {RECORDS}", 1.0, True),
    report.Aim(FIRST_ROW, 0.5, False),
    report.Aim(latency_name("p50"), 1.0, False),
)


def main() -> int:
    options = _parser().parse_args()
    share = 0.1 if options.quick else 1.0
    rounds: report.Rounds = {"moldau": [], "apache": []}
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder, Cluster() as cluster:
        inputs = _filled(cluster.bootstrap_servers, Path(folder), share)
        connector = ",".join(map(str, jars.spark_connector_jars()))
        # A quick start is quick from the second time: the first start fills the caches that later ones use.
        _run(inputs, "", START)
        for number in range(1 if options.quick else options.rounds):
            sides = [("moldau", ""), ("apache", connector)]
            for side, jar_list in sides if number % 2 == 0 else reversed(sides):
                begin = time.monotonic()
                figures = _run(inputs, jar_list, START)
                rounds[side].append(figures | _measure(inputs, jar_list, f"{side}-{number}"))
                words = (
                    f"round {number + 1}: {side if not jar_list else PEER}, {time.monotonic() - begin:.0f} s"
                )
                print(words, file=sys.stderr, flush=True)
    Path(options.json).write_text(json.dumps({"machine": machine(), "rounds": rounds}, indent=2) + "\n")
    tables = f"{machine()}.\n\n{_markdown(rounds)}\n"
    print(tables)
    if options.publish:
        publish_tables("pipelines", tables)
    return 0


def _filled(servers: str, folder: Path, share: float) -> Inputs:
    """Create and fill the topics that both sides read."""
    small, large, events = (int(count * share) for count in (4_000_000, 500_000, 1_000_000))
    inputs = Inputs(servers, str(folder), small, large, events)
    with AdminClient(servers) as admin:
        admin.create_topics([NewTopic(name, _PARTITIONS) for name in ("small", "large", "events")])
    librdkafka = Librdkafka()
    librdkafka.run("produce", servers, "small", inputs.small, 100, ("acks=all",), partitions=_PARTITIONS)
    librdkafka.run("produce", servers, "large", inputs.large, 1024, ("acks=all",), partitions=_PARTITIONS)
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000}
    )
    for number in range(inputs.events):
        event = {"user": f"user-{number % 1000}", "at": 1_700_000_000 + number // 1000, "amount": number % 97}
        producer.produce("events", json.dumps(event), key=str(number % 1000))
        if number % 100_000 == 0:
            producer.poll(0)
    producer.flush()
    return inputs


def _measure(inputs: Inputs, connector: str, turn: str) -> Figures:
    with _started(inputs, connector, turn) as process:
        with peak_of(lambda: unshared_megabytes(process.pid)) as peak:
            figures = _outcome(process)
        return figures | {_MEMORY: peak()}


def _run(inputs: Inputs, connector: str, turn: str) -> Figures:
    with _started(inputs, connector, turn) as process:
        return _outcome(process)


def _started(inputs: Inputs, connector: str, turn: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.pipelines.jobs", json.dumps(inputs._asdict()), connector, turn],
        stdout=subprocess.PIPE,
        text=True,
    )


def _outcome(process: subprocess.Popen[str]) -> Figures:
    output, _ = process.communicate(timeout=_JOB_SECONDS)
    if process.returncode != 0:
        sys.exit(f"the jobs failed: {output}")
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def _markdown(rounds: report.Rounds) -> str:
    figures = report.compared(rounds)
    loads = [name.removesuffix(f": {CPU}") for name in figures if name.endswith(f": {CPU}")]
    shown = [name for name in figures if not any(name.startswith(f"{load}: ") for load in loads)]
    sections = [
        ("### Rows, and what they cost", report.loads_table(figures, loads, RECORDS, PEER)),
        ("### Start, latency, memory", report.plain_table((figures[name] for name in shown), PEER)),
        ("### Aims", report.aims_table(figures, AIMS, f"the {PEER}")),
    ]
    return "\n\n".join(f"{title}\n\n{table}" for title, table in sections if table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipelines", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds per side")
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the load")
    parser.add_argument("--json", default="benchmarks-pipelines.json", help="file for all figures")
    parser.add_argument("--publish", action="store_true", help="update the tables in docs/BENCHMARKS.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
