"""Tables from the rounds of both brokers: medians with their spread, ratios, and the aims that are met.

The spread is half of the distance between the best and the worst round, in percent of the median. A ratio
that differs from 1 by less than the spread is not significant.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks import authorizer, metrics, streams_groups, tiered
from benchmarks.coordination import COMMITS, FIGURES, PROCESSED, SETTLE, TRANSACTIONS
from benchmarks.tls import CPU_PER_GIGABYTE, consume_name, produce_name
from benchmarks.workloads import CPU, IDLE, LOADED, MEGABYTES, READY, RECORDS, REQUESTS, Figures, latency_name

Rounds = dict[str, list[Figures]]


@dataclass(frozen=True, slots=True)
class Aim:
    """The ratio of Moldau's figure to that of Apache Kafka should be at least or at most `ratio`."""

    figure: str
    ratio: float
    at_least: bool

    def met(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.at_least else ratio <= self.ratio

    def __str__(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.ratio:g}"


@dataclass(frozen=True, slots=True)
class Limit:
    """Moldau's figure itself should be at most `most`."""

    figure: str
    most: float


LIMITS = (
    Limit(authorizer.decision_name("cached", authorizer.ACLS), 2.0),
    *(Limit(authorizer.cpu_name(size), 1.03) for size in ("100 B", "1 KiB")),
    *(Limit(metrics.cpu_name("produce", size), 1.02) for size in ("100 B", "1 KiB")),
    *(Limit(metrics.cpu_name("consume", size), 1.02) for size in ("100 B", "1 KiB")),
    Limit(metrics.SCRAPE, 50.0),
    Limit(metrics.SCRAPE_GROUP, 50.0),
    Limit(tiered.TAIL_RATIO, 1.5),
    Limit(tiered.REPLICA, 10.0),
    *(Limit(f"{produce_name(size)}: {CPU_PER_GIGABYTE}", 2.5) for size in ("100 B", "1 KiB")),
    *(Limit(f"{consume_name(size)}: {CPU_PER_GIGABYTE}", 1.8) for size in ("100 B", "1 KiB")),
)
AIMS = (
    Aim(f"produce 100 B, acks=1: {RECORDS}", 1.2, True),
    Aim(f"produce 100 B, acks=all: {RECORDS}", 1.2, True),
    Aim(f"produce 1 KiB, acks=1: {RECORDS}", 1.5, True),
    Aim(f"produce 1 KiB, acks=all: {RECORDS}", 1.5, True),
    Aim(f"consume 100 B: {RECORDS}", 1.0, True),
    Aim(f"consume 1 KiB: {RECORDS}", 1.0, True),
    Aim(f"produce 100 B, acks=1: {CPU}", 0.5, False),
    Aim(f"produce 1 KiB, acks=1: {CPU}", 0.5, False),
    Aim(f"consume 100 B: {CPU}", 1.0, False),
    Aim(f"consume 1 KiB: {CPU}", 1.0, False),
    Aim(f"one record a request: {REQUESTS}", 1.0, True),
    Aim(f"one record a request, 20 connections: {REQUESTS}", 1.0, True),
    Aim(latency_name("p50"), 1.0, False),
    Aim(latency_name("p99"), 1.0, False),
    Aim(READY, 0.1, False),
    Aim(IDLE, 0.1, False),
    Aim(LOADED, 0.1, False),
    Aim(SETTLE, 1.0, False),
    Aim(COMMITS, 1.0, True),
    Aim(TRANSACTIONS, 1.0, True),
    Aim(PROCESSED, 1.0, True),
    *(Aim(name, 1.0, False) for name in streams_groups.FIGURES),
    *(
        Aim(f"{name(size)}: {RECORDS}", 1.5, True)
        for name in (produce_name, consume_name)
        for size in ("100 B", "1 KiB")
    ),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Median and spread of one figure of Moldau, and of Apache Kafka if that was measured."""

    name: str
    moldau: float
    moldau_spread: float
    apache: float | None = None
    apache_spread: float = 0.0

    @property
    def ratio(self) -> float | None:
        return self.moldau / self.apache if self.apache else None


def compared(rounds: Rounds) -> dict[str, Compared]:
    ours, theirs = rounds["moldau"], rounds.get("apache", [])
    return {
        name: Compared(
            name,
            *_middle(name, ours),
            *(_middle(name, theirs) if any(name in each for each in theirs) else ()),
        )
        for name in ours[0]
    }


def _middle(name: str, rounds: Sequence[Figures]) -> tuple[float, float]:
    values = [figures[name] for figures in rounds if name in figures]
    median = statistics.median(values)
    return median, (max(values) - min(values)) / 2 / median if median else 0.0


def markdown(figures: dict[str, Compared], once: dict[str, Figures]) -> str:
    """Return all tables; `once` has the figures that were measured a single time, by broker."""
    loads = [name.removesuffix(f": {CPU}") for name in figures if name.endswith(f": {CPU}")]
    bulk = [load for load in loads if f"{load}: {RECORDS}" in figures]
    eager = [load for load in loads if f"{load}: {REQUESTS}" in figures]
    tls = [name.removesuffix(f": {CPU_PER_GIGABYTE}") for name in figures if name.endswith(CPU_PER_GIGABYTE)]
    coordination = [name for name in figures if name in FIGURES + streams_groups.FIGURES]
    plain = [name for name in figures if ": " not in name or name.startswith("end to end")]
    single = [name for name in plain if name not in (*coordination, *authorizer.FIGURES, *metrics.FIGURES)]
    authorization = [name for name in figures if name in authorizer.FIGURES]
    sections = [
        ("### Throughput, and what it costs the broker", loads_table(figures, bulk, RECORDS)),
        ("### Many small requests (`linger.ms=0`)", loads_table(figures, eager, REQUESTS)),
        ("### Over TLS", loads_table(figures, tls, RECORDS, cost=CPU_PER_GIGABYTE)),
        ("### Latency, start, memory", plain_table(figures[name] for name in single)),
        ("### Groups and transactions", plain_table(figures[name] for name in coordination)),
        ("### Authorization", plain_table(figures[name] for name in authorization)),
        ("### Metrics", plain_table(figures[name] for name in figures if name in metrics.FIGURES)),
        ("### Tiered storage", plain_table(figures[name] for name in figures if name in tiered.FIGURES)),
        ("### Scale (measured once)", plain_table(_once(once))),
        ("### Aims", aims_table(figures, AIMS)),
        ("### Limits", limits_table(figures, LIMITS)),
    ]
    return "\n\n".join(f"{title}\n\n{table}" for title, table in sections if table)


def loads_table(
    figures: dict[str, Compared], loads: Iterable[str], unit: str, peer: str = "Apache", cost: str = CPU
) -> str:
    lines = []
    for load in loads:
        speed, spent = figures[f"{load}: {unit}"], figures[f"{load}: {cost}"]
        megabytes = figures.get(f"{load}: {MEGABYTES}")
        row = [load, *cells(speed, megabytes), *cells(spent)]
        lines.append(f"| {' | '.join(row)} |")
    head = f"| | Moldau, {unit} | {peer} | ratio | Moldau, {cost.removeprefix('broker ')} | {peer} | ratio |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *lines]) if lines else ""


def cells(figure: Compared, megabytes: Compared | None = None) -> list[str]:
    """Return our value, the peer's and the ratio, as cells of a table."""
    ours = _value(figure.moldau, figure.moldau_spread, megabytes.moldau if megabytes else None)
    if figure.apache is None or figure.ratio is None:
        return [ours, "", ""]
    theirs = _value(figure.apache, figure.apache_spread, megabytes.apache if megabytes else None)
    return [ours, theirs, f"**{figure.ratio:.2f}**"]


def _value(value: float, spread: float, megabytes: float | None = None) -> str:
    text = number(value) + (f" ±{spread:.0%}" if spread else "")
    return text if megabytes is None else f"{text} ({number(megabytes)} MB/s)"


def plain_table(figures: Iterable[Compared], peer: str = "Apache") -> str:
    lines = [f"| {' | '.join([figure.name, *cells(figure)])} |" for figure in figures]
    return "\n".join([f"| | Moldau | {peer} | ratio |", "|---|---|---|---|", *lines]) if lines else ""


def _once(once: dict[str, Figures]) -> Iterable[Compared]:
    theirs = once.get("apache", {})
    return [Compared(name, value, 0.0, theirs.get(name)) for name, value in once.get("moldau", {}).items()]


def aims_table(figures: dict[str, Compared], aims: Iterable[Aim], peer: str = "Apache") -> str:
    lines = []
    for aim in aims:
        figure = figures.get(aim.figure)
        if figure is not None and figure.ratio is not None:
            verdict = "met" if aim.met(figure.ratio) else "**not met**"
            if abs(figure.ratio - aim.ratio) < figure.ratio * (figure.moldau_spread + figure.apache_spread):
                verdict += ", by less than the spread"
            lines.append(f"| {aim.figure} | {aim} | {figure.ratio:.2f} | {verdict} |")
    head = f"| Moldau over {peer} | aim | measured | |\n|---|---|---|---|"
    return "\n".join([head, *lines]) if lines else ""


def limits_table(figures: dict[str, Compared], limits: Iterable[Limit]) -> str:
    lines = [
        f"| {limit.figure} | at most {limit.most:g} | {number(figures[limit.figure].moldau)} | "
        f"{'met' if figures[limit.figure].moldau <= limit.most else '**not met**'} |"
        for limit in limits
        if limit.figure in figures
    ]
    return "\n".join(["| Moldau | limit | measured | |", "|---|---|---|---|", *lines]) if lines else ""


def number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 10_000:
        return f"{value / 1e3:.0f} k"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
