"""`python -m benchmarks.cluster`: compare three nodes of Moldau with three of Apache Kafka, acks=all.

Both clusters run alternately on the same machine with the same properties files. Measured are the time
without acknowledged writes after a node is killed or stopped (`failover`), throughput, latency, CPU time and
memory, and the time a restarted node needs to catch up. The tables show the median and the spread of the
rounds.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
from pathlib import Path

from benchmarks import report
from benchmarks.__main__ import brokers, machine, publish_tables
from benchmarks.brokers import Software
from benchmarks.clients import Librdkafka
from benchmarks.failover import probing
from benchmarks.processes import peak_of
from benchmarks.three_nodes import NODES, ThreeNodes
from benchmarks.workloads import CPU, MEGABYTES, RECORDS, Figures, latency_name

_PARTITIONS = 12
_LOAD_PARTITIONS = 6
_FAILURES = 3
_QUIET_SECONDS = 3.0
_AWAY_MEGABYTES = 200

READY = "three nodes: nothing to a topic with 3 replicas in sync, s"
KILLED = "kill -9 of a broker: longest time without an acknowledged write, s"
CONTROLLER_KILLED = "kill -9 of the active controller: longest time without an acknowledged write, s"
STOPPED = "planned stop of a node: longest time without an acknowledged write, s"
CAUGHT_UP = f"a node that missed {_AWAY_MEGABYTES} MB: start to in sync, s"
IDLE = "three nodes: resident memory idle, MB"
LOADED = "three nodes: resident memory under load, at most, MB"

LOADS = (("100 B", 100, 3_000_000), ("1 KiB", 1024, 500_000))

AIMS = (
    *(report.Aim(f"produce {name}, acks=all, 3 replicas: {RECORDS}", 1.5, True) for name, _, _ in LOADS),
    report.Aim(latency_name("p99"), 1.0, False),
    report.Aim(KILLED, 0.1, False),
    report.Aim(CONTROLLER_KILLED, 0.1, False),
    report.Aim(STOPPED, 1.0, False),
    report.Aim(CAUGHT_UP, 1.0, False),
    report.Aim(LOADED, 0.1, False),
)


class _Round:
    """One round of one cluster."""

    def __init__(self, librdkafka: Librdkafka, share: float) -> None:
        self._librdkafka = librdkafka
        self._share = share
        self.figures: Figures = {}

    def measure(self, software: Software) -> Figures:
        with ThreeNodes(software) as nodes:
            self.figures[READY] = nodes.first_start()
            time.sleep(2)
            self.figures[IDLE] = nodes.memory()
            self._throughput(nodes)
            self._catch_up(nodes)
            self._failures(nodes)
        return self.figures

    def _throughput(self, nodes: ThreeNodes) -> None:
        nodes.create("warm-up", _LOAD_PARTITIONS)
        self._produce(nodes, "warm-up", 100, 500_000)
        with peak_of(nodes.memory) as peak:
            for name, size, count in LOADS:
                self._load(nodes, name, size, self._scaled(count))
            self._latency(nodes)
            self.figures[LOADED] = peak()

    def _load(self, nodes: ThreeNodes, name: str, size: int, count: int) -> None:
        topic = f"load-{size}"
        nodes.create(topic, _LOAD_PARTITIONS)
        before = nodes.cpu()
        outcome = self._produce(nodes, topic, size, count)
        title = f"produce {name}, acks=all, 3 replicas"
        self.figures[f"{title}: {RECORDS}"] = outcome["records_per_s"]
        self.figures[f"{title}: {MEGABYTES}"] = outcome["mb_per_s"]
        self.figures[f"{title}: {CPU}"] = (nodes.cpu() - before) / count * 1e6

    def _produce(self, nodes: ThreeNodes, topic: str, size: int, count: int) -> dict[str, float]:
        settings = ("acks=all", f"connections={_LOAD_PARTITIONS}")
        return self._librdkafka.run(
            "produce", nodes.bootstrap, topic, count, size, settings, partitions=_LOAD_PARTITIONS
        )

    def _latency(self, nodes: ThreeNodes) -> None:
        nodes.create("latency", 1)
        settings = ("500", "acks=all", "linger.ms=0")
        count = self._scaled(2500)
        outcome = self._librdkafka.run("latency", nodes.bootstrap, "latency", count, 100, settings)
        for quantile, key in (("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p999_ms")):
            self.figures[latency_name(quantile)] = outcome[key]

    def _catch_up(self, nodes: ThreeNodes) -> None:
        nodes.create("away", _LOAD_PARTITIONS)
        nodes.end(3, signal.SIGTERM)
        self._produce(nodes, "away", 1024, _AWAY_MEGABYTES * 1_000_000 // 1024)
        begin = time.monotonic()
        nodes.start(3)
        nodes.wait_in_sync("away", _LOAD_PARTITIONS)
        self.figures[CAUGHT_UP] = time.monotonic() - begin

    def _failures(self, nodes: ThreeNodes) -> None:
        nodes.create("probe", _PARTITIONS)
        with probing(list(nodes.ports.values()), "probe", _PARTITIONS) as probe:
            for title, number, active in (
                (KILLED, signal.SIGKILL, False),
                (CONTROLLER_KILLED, signal.SIGKILL, True),
                (STOPPED, signal.SIGTERM, None),
            ):
                gaps = []
                for _ in range(_FAILURES):
                    nodes.wait_in_sync("probe", _PARTITIONS)
                    time.sleep(1)
                    controller = nodes.active_controller()
                    victim = controller if active else next(each for each in NODES if each != controller)
                    probe.begin()
                    nodes.end(victim, number)
                    gaps.append(probe.longest(_QUIET_SECONDS))
                    nodes.start(victim)
                self.figures[title] = statistics.median(gaps)

    def _scaled(self, count: int) -> int:
        return max(1000, int(count * self._share))


def main() -> int:
    options = _parser().parse_args()
    librdkafka = Librdkafka()
    clusters, _ = brokers()
    rounds: report.Rounds = {software.name: [] for software in clusters}
    count, share = (1, 0.2) if options.quick else (options.rounds, 1.0)
    for number in range(count):
        for software in clusters if number % 2 == 0 else reversed(clusters):
            begin = time.monotonic()
            rounds[software.name].append(_Round(librdkafka, share).measure(software))
            words = f"round {number + 1} of {count}: {software.name}, {time.monotonic() - begin:.0f} s"
            print(words, file=sys.stderr, flush=True)
    Path(options.json).write_text(json.dumps({"machine": machine(), "rounds": rounds}, indent=2) + "\n")
    tables = f"{machine()}.\n\n{_markdown(rounds)}\n"
    print(tables)
    if options.publish:
        publish_tables("cluster", tables)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds per cluster")
    parser.add_argument("--quick", action="store_true", help="one round with a fifth of the load")
    parser.add_argument("--json", default="benchmarks-cluster.json", help="file for all figures")
    parser.add_argument("--publish", action="store_true", help="update the tables in docs/BENCHMARKS.md")
    return parser


def _markdown(rounds: report.Rounds) -> str:
    figures = report.compared(rounds)
    loads = [name.removesuffix(f": {CPU}") for name in figures if name.endswith(f": {CPU}")]
    shown = [name for name in figures if not any(name.startswith(f"{load}: ") for load in loads)]
    sections = [
        ("### Throughput of three nodes", report.loads_table(figures, loads, RECORDS)),
        ("### Failover, latency, memory", report.plain_table(figures[name] for name in shown)),
        ("### Aims", report.aims_table(figures, AIMS)),
    ]
    return "\n\n".join(f"{title}\n\n{table}" for title, table in sections if table)


if __name__ == "__main__":
    sys.exit(main())
