"""The committed list of a suite: a line per test with its results on Moldau and on Apache Kafka.

A line reads `name | result on Moldau | result on Apache Kafka`; a result is `pass`, `fail: why` or
`skip: why`. The reasons are written by hand and kept as long as the result stays the same. The number of
passes only grows: a pass is removed only by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.interop.suites.suite import Outcome, Suite

BROKERS = ("moldau", "apache")
_FOLDER = Path(__file__).parent
_UNKNOWN = Outcome("fail", "not run yet")


@dataclass
class Listing:
    """The results by test, for each broker."""

    package: str
    results: dict[str, dict[str, Outcome]]

    def outcome(self, test: str, broker: str) -> Outcome:
        return self.results.get(test, {}).get(broker, _UNKNOWN)

    def passes(self, broker: str) -> list[str]:
        return [test for test in self.results if self.outcome(test, broker).passed]

    def record(self, broker: str, ran: Mapping[str, Outcome]) -> list[str]:
        """Record results; return the tests that no longer pass, which are left unchanged."""
        lost = []
        for test, found in ran.items():
            known = self.outcome(test, broker)
            if known.passed and not found.passed:
                lost.append(test)
            elif known == _UNKNOWN or known.result != found.result:
                self.results.setdefault(test, {})[broker] = found
        return lost

    def only(self, tests: Iterable[str]) -> None:
        """Return the listing with exactly these tests, in this order."""
        self.results = {test: self.results.get(test, {}) for test in tests}


def read(suite: Suite) -> Listing:
    path = _path(suite)
    listing = Listing(suite.package, {})
    for line in path.read_text().splitlines() if path.exists() else ():
        if line and not line.startswith("#"):
            test, *results = (part.strip() for part in line.split(" | "))
            listing.results[test] = dict(zip(BROKERS, map(Outcome.parse, results), strict=True))
    return listing


def write(suite: Suite, listing: Listing) -> None:
    rows = [(test, *(str(listing.outcome(test, broker)) for broker in BROKERS)) for test in listing.results]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [
        f"# {suite.package}",
        f"# test | Moldau | Apache Kafka 4.3; written by: python -m tests.interop.suites update {suite.name}",
        *(f"{test:<{widths[0]}} | {moldau:<{widths[1]}} | {apache}" for test, moldau, apache in rows),
    ]
    _path(suite).write_text("\n".join(lines) + "\n")


def _path(suite: Suite) -> Path:
    return _FOLDER / f"{suite.name}.txt"
