"""The table of other people's test suites in docs/COMPATIBILITY.md, counted from the committed lists.

The lists lie in `tests/interop/suites`, a line for each test: its name, its result on Moldau, its result on
Apache Kafka. They are part of the repository, as the document is, and not of the installed package; without
them there is no table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LISTS = Path(__file__).parents[1] / "tests" / "interop" / "suites"

_PASS = "pass"


class SuiteCount(NamedTuple):
    """`missing` counts what Apache Kafka passes and Moldau does not, by reason."""

    package: str
    total: int
    moldau: int
    apache: int
    missing: Counter[str]


def suite_counts(lists: Path = LISTS) -> list[SuiteCount]:
    return [_count(path.read_text()) for path in sorted(lists.glob("*.txt"))]


def section() -> Iterator[str]:
    counts = suite_counts()
    if not counts:
        return
    yield (
        "## Other people's test suites\n\n"
        "The integration tests that client projects ship in their packages, run unchanged by `make interop`\n"
        "against Moldau, and the same way against Apache Kafka 4.3; each test by name is in\n"
        "`tests/interop/suites/*.txt`. A test that passed once must go on passing.\n"
    )
    rows = [
        "| suite | tests | Moldau passes | Apache Kafka passes | of these Moldau lacks |",
        "|---|---:|---:|---:|---|",
    ]
    for each in counts:
        lacks = ", ".join(f"{reason} ({count})" for reason, count in each.missing.most_common())
        rows.append(f"| {each.package} | {each.total} | {each.moldau} | {each.apache} | {lacks} |")
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
