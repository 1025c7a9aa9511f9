"""`python -m benchmarks.connect`: run the same connectors in our worker and in Kafka Connect's.

Every round starts each worker, with tasks in threads and on Spark for ours, runs all loads
(`benchmarks/connect/loads.py`) and stops it. `--only tables` measures our sinks for Iceberg and Delta instead
(`benchmarks/connect/lake.py`), and merges the figures into those of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.__main__ import machine, publish_tables
from benchmarks.brokers import Broker, moldau
from benchmarks.connect import lake, loads
from benchmarks.connect.loads import CPU, FIRST, IDLE, JDBC, MEMORY, P50, P99, RATE, SINK, SOURCE, Inputs
from benchmarks.connect.workers import Worker, kafka_connect, ours
from benchmarks.rounds import Figures, alternating, markdown
from tests.harness.databases.postgresql import PostgreSql
from tests.interop import jars

_PEER = "Kafka Connect"
AIMS = (
    *(report.Aim(f"{load}: {RATE}", 1.0, True) for load in (SOURCE, SINK, JDBC)),
    *(report.Aim(f"{load}: {CPU}", 1.0, False) for load in (SOURCE, SINK, JDBC)),
    *(report.Aim(name, 1.0, False) for name in (FIRST, P50, P99, IDLE, MEMORY)),
)


def main() -> int:
    options = _parser().parse_args()
    kept = _kept(options)
    kept |= _measured(options)
    Path(options.json).write_text(json.dumps(kept, indent=2) + "\n")
    count = len(next(iter(kept["rounds"].values()), []))
    tables = f"{kept['machine']}; median of {count} rounds.\n\n"
    tables += f"{_tables(kept)}\n"
    print(tables)
    if options.publish:
        publish_tables("connect", tables)
    return 0


def _kept(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of an earlier run that this one does not measure."""
    if options.only in ("tables", "report") and Path(options.json).exists():
        kept: dict[str, Any] = json.loads(Path(options.json).read_text())
        return kept
    return {"machine": machine(), "rounds": {}, "tables": {}}


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    if options.only == "report":
        return {}
    workers = _workers(options)
    turns = iter(range(1000))
    with (
        tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder,
        Broker(moldau()) as node,
    ):
        node.first_start()
        database = PostgreSql()
        try:
            inputs = Inputs(node.bootstrap, Path(folder), database, 0.1 if options.quick else 1.0)
            inputs.fill()
            if options.only == "tables":
                return {"tables": _measure_tables(inputs)}
            rounds = alternating(
                workers,
                options.rounds,
                lambda worker: worker.name,
                lambda worker: _measure(worker, inputs, next(turns)),
            )
            return {"rounds": rounds}
        finally:
            database.close()


def _measure_tables(inputs: Inputs) -> Figures:
    worker = ours()[0]
    with worker.running(inputs.folder, inputs.bootstrap, "bench-tables") as running:
        figures = lake.measure(running, inputs)
    return figures | lake.spark_writer(inputs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connect", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="number of rounds per worker")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument(
        "--only", choices=["threads", "spark", "apache", "tables", "report"], help="measure only this"
    )
    parser.add_argument("--json", default="benchmarks-connect.json", help="file for all figures")
    parser.add_argument("--publish", action="store_true", help="update the tables in docs/BENCHMARKS.md")
    return parser


def _workers(options: argparse.Namespace) -> list[Worker]:
    threads, spark = ours()
    found = {"threads": [threads], "spark": [spark], None: [threads, spark]}.get(options.only, [])
    if options.only in (None, "apache"):
        if shutil.which("java") is None:
            sys.exit("Kafka Connect needs Java (apt install default-jdk-headless maven); --only threads")
        found.append(kafka_connect(jars.connect_libs(), jars.debezium_jdbc_libs()))
    return found


def _measure(worker: Worker, inputs: Inputs, turn: int) -> Figures:
    with worker.running(inputs.folder, inputs.bootstrap, f"bench-{turn}") as running:
        return loads.measure(running, inputs, str(turn))


def _tables(kept: dict[str, Any]) -> str:
    rounds: dict[str, list[Figures]] = kept["rounds"]
    sections = [markdown(rounds)]
    if kept.get("tables"):
        sections += ["### Tables from topics", markdown({"Moldau, threads": [kept["tables"]]})]
    if _PEER in rounds:
        for name in [each for each in rounds if each != _PEER]:
            figures = report.compared({"moldau": rounds[name], "apache": rounds[_PEER]})
            sections += [f"### Aims: {name}", report.aims_table(figures, AIMS, _PEER)]
    return "\n\n".join(sections)


if __name__ == "__main__":
    sys.exit(main())
