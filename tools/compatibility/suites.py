"""The results of other projects' test suites, counted from the lists in `tests/interop/suites`.

A list has one line per test: its name, its result on Moldau, its result on Apache Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LISTS = Path(__file__).parents[2] / "tests" / "interop" / "suites"

_PASS = "pass"


class SuiteCount(NamedTuple):
    """The counts of a suite; `missing` counts the tests that only Apache Kafka passes, by reason."""

    package: str
    total: int
    moldau: int
    apache: int
    missing: Counter[str]


def suite_counts(lists: Path = LISTS) -> list[SuiteCount]:
    return [_count(path.read_text()) for path in sorted(lists.glob("*.txt"))]


def section() -> Iterator[str]:
    """Yield the section of the page, or nothing if there are no lists."""
    counts = suite_counts()
    if not counts:
        return
    yield (
        "## Test suites of other projects\n\n"
        "`make interop` runs the integration tests that client projects ship in their packages, unchanged,\n"
        "against Moldau and Apache Kafka 4.3. `tests/interop/suites/*.txt` lists every test by name. A test\n"
        "that has passed once must keep passing.\n"
    )
    rows = [
        "| suite | tests | pass on Moldau | pass on Apache Kafka | pass on Apache Kafka only, by reason |",
        "|---|---:|---:|---:|---|",
    ]
    for each in counts:
        missing = ", ".join(f"{reason} ({count})" for reason, count in each.missing.most_common())
        rows.append(f"| {each.package} | {each.total} | {each.moldau} | {each.apache} | {missing} |")
    yield "\n".join(rows) + "\n"


def _count(text: str) -> SuiteCount:
    first, *lines = text.splitlines()
    results = [
        tuple(part.strip() for part in line.split(" | ")[1:]) for line in lines if not line.startswith("#")
    ]
    missing = Counter(
        moldau.partition(": ")[2] for moldau, apache in results if apache == _PASS and moldau != _PASS
    )
    return SuiteCount(
        package=first.removeprefix("# "),
        total=len(results),
        moldau=sum(moldau == _PASS for moldau, _ in results),
        apache=sum(apache == _PASS for _, apache in results),
        missing=missing,
    )
