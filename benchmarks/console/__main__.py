"""`python -m benchmarks.console`: measure the web console on a large cluster.

The cluster, the console and the viewers share the machine. Times are those of whole answers as a browser
receives them; CPU is user and system time in percent of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.__main__ import machine, publish_tables
from benchmarks.console.scene import LARGE, NEEDLE, Scale, prepare
from benchmarks.console.viewers import browsing, events, get
from benchmarks.processes import cpu_seconds, memory_megabytes, peak_of
from moldau.local.ports import ReservedPorts
from moldau.testing import Cluster

Figures = dict[str, float]

#: Every page of the console that the cluster alone has content for.
PAGES = {
    "overview": "/",
    "topics": "/topics",
    "topics, by size, last page": "/topics?sort=size&page=99",
    "topic: messages": f"/topics/{LARGE}/messages",
    "topic: partitions": f"/topics/{LARGE}/partitions",
    "topic: configuration": "/topics/topic-7/configuration",
    "topic: groups": "/topics/topic-7/groups",
    "record": f"/topics/{LARGE}/messages/0/0",
    "groups": "/groups",
    "groups, by lag": "/groups?sort=lag",
    "group": "/groups/group-7",
    "brokers": "/brokers",
    "broker": "/brokers/1",
    "ACLs": "/acls",
    "users": "/users",
    "quotas": "/quotas",
    "schemas": "/schemas",
    "connectors": "/connectors",
    "pipelines": "/pipelines",
    "SQL": "/sql",
}
_LIVE = ("/", "/topics", "/groups", "/brokers", f"/topics/{LARGE}/partitions", "/groups/group-7")
_VIEWERS = 10
#: The last record is found by its text in the batches, or by a comparison with every record.
_SEARCHES = {"text": f"filter={NEEDLE}", "expression": f'expression=value+==+"{NEEDLE}"'}
AIM_S = 1.0


class Console:
    """`moldau console` as a process of its own."""

    def __init__(self, bootstrap: str) -> None:
        ports = ReservedPorts("127.0.0.1")
        self.port = ports.choose()
        ports.release()
        command = [sys.executable, "-m", "moldau", "console", "--bootstrap-server", bootstrap]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port)], stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def megabytes(self) -> float:
        return memory_megabytes(self.pid)

    def __enter__(self) -> Console:
        if self._process.stdout is None or "is ready" not in self._process.stdout.readline():
            raise SystemExit("The console did not start.")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


def main() -> int:
    options = _parser().parse_args()
    scale = Scale(200, 50, 500_000) if options.quick else Scale()
    with Cluster(brokers=3, start_timeout=60) as cluster:
        begin = time.monotonic()
        asyncio.run(prepare(cluster, scale))
        _report(f"the cluster is prepared after {time.monotonic() - begin:.0f} s")
        figures, pages = _measure(cluster, 5 if options.quick else 60, 3 if options.quick else 20)
    tables = f"{machine()}. {_scale_words(scale)}\n\n{_tables(figures, pages)}\n"
    Path(options.json).write_text(json.dumps({"figures": figures, "pages": pages}, indent=2) + "\n")
    print(tables)
    if options.publish:
        publish_tables("console", tables)
    slow = [name for name, times in pages.items() if max(times) > AIM_S]
    _report(f"pages above {AIM_S:.0f} s: {', '.join(slow) or 'none'}")
    return 0


def _measure(cluster: Cluster, seconds: float, rounds: int) -> tuple[Figures, dict[str, list[float]]]:
    brokers = [each.pid for each in cluster.brokers]
    figures: Figures = {}
    figures["brokers without console, CPU %"] = _cpu(brokers, seconds)[0]
    begin = time.monotonic()
    with Console(cluster.bootstrap_servers) as console:
        figures["console: start, s"] = time.monotonic() - begin
        with peak_of(lambda: console.megabytes) as peak:
            pages = {name: [get(console.port, path)] for name, path in PAGES.items()}
            for _ in range(rounds):
                for name, path in PAGES.items():
                    pages[name].append(get(console.port, path))
            figures["console: memory after the pages, MB"] = console.megabytes
            _report("pages are measured")
            # A page is regarded as open for half a minute.
            time.sleep(min(seconds, 35))
            idle = _cpu([console.pid], seconds, brokers)
            figures["console idle, CPU %"], figures["brokers while idle, CPU %"] = idle
            # The first page waits for a new snapshot.
            figures["first page after idle time, ms"] = get(console.port, "/topics") * 1000
            with browsing(console.port, _LIVE, _VIEWERS) as answers:
                busy = _cpu([console.pid], seconds, brokers)
            figures["console with 10 viewers, CPU %"], figures["brokers with 10 viewers, CPU %"] = busy
            figures["pages with 10 viewers, median, ms"] = statistics.median(answers) * 1000
            figures["pages with 10 viewers, max, ms"] = max(answers) * 1000
            figures["console: memory with 10 viewers, at most, MB"] = peak()
            _report("viewers are measured")
        for name, query in _SEARCHES.items():
            figures |= _search(console, name, query)
    return figures, pages


def _cpu(first: Sequence[int], seconds: float, second: Sequence[int] = ()) -> tuple[float, float]:
    """Return the CPU time of two sets of processes in percent of a core."""

    def spent(pids: Sequence[int]) -> float:
        return sum(map(cpu_seconds, pids))

    before, begin = (spent(first), spent(second)), time.monotonic()
    time.sleep(seconds)
    passed = (time.monotonic() - begin) / 100
    return (spent(first) - before[0]) / passed, (spent(second) - before[1]) / passed


def _search(console: Console, name: str, query: str) -> Figures:
    """Search the whole large topic, while another viewer looks at the list of topics."""
    path = f"/topics/{LARGE}/messages/search?start=beginning&limit=500&{query.replace(' ', '+')}"
    other: list[float] = []
    begin = time.monotonic()
    end: dict[str, object] = {}
    with peak_of(lambda: console.megabytes) as peak:
        looked = begin
        for event, data in events(console.port, path):
            if time.monotonic() > looked + 1:
                other.append(get(console.port, "/topics"))
                looked = time.monotonic()
            if event == "end":
                end = data
                break
    seconds = time.monotonic() - begin
    if not end.get("complete") or not end.get("found"):
        raise SystemExit(f"The search by {name} ended with {end}.")
    _report(f"search by {name}: {seconds:.1f} s")
    return {
        f"search by {name}: records/s": float(str(end["done"])) / seconds,
        f"search by {name}: memory, at most, MB": peak(),
        f"another page meanwhile, search by {name}, max, ms": max(other, default=0.0) * 1000,
    }


def _tables(figures: Figures, pages: dict[str, list[float]]) -> str:
    lines = ["### Pages", "", "| page | first, ms | median, ms | max, ms |", "|---|---|---|---|"]
    for name, times in pages.items():
        cells = [times[0], statistics.median(times), max(times)]
        lines.append(f"| {name} | {' | '.join(f'{each * 1000:.0f}' for each in cells)} |")
    lines += ["", "### CPU, memory, searches", "", "| | |", "|---|---|"]
    lines += [
        f"| {name} | {value:,.0f} |" if value >= 100 else f"| {name} | {value:.3g} |"
        for name, value in figures.items()
    ]
    return "\n".join(lines)


def _scale_words(scale: Scale) -> str:
    return (
        f"Three nodes, {scale.partitions:,} partitions with three replicas, {scale.groups:,} groups, a topic "
        f"of {scale.records:,} records of 100 bytes."
    )


def _report(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small cluster, with less precision")
    parser.add_argument("--publish", action="store_true", help="update docs/BENCHMARKS.md")
    parser.add_argument("--json", default="benchmarks-console.json", help="file for the figures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
