"""`python -m tests.interop.suites`: run tests of other people's suites, and write the lists of what passes.

`run SUITE [TEST ...]` runs tests and shows their results; `update SUITE [TEST ...]` also writes them into the
list. Every test has all the time it wants, or as many seconds as `--limit` says. With
`MOLDAU_TEST_BROKER=apache` both ask Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.interop import jars
from tests.interop.suites import listing, runner
from tests.interop.suites.catalog import SUITES
from tests.interop.suites.suite import Suite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.suites", description=__doc__)
    parser.add_argument("command", choices=("run", "update"))
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("tests", nargs="*", metavar="TEST", help="all of them when none is named")
    parser.add_argument("--limit", type=float, help="seconds for one test, instead of the suite's own limit")
    parser.add_argument(
        "--quick", action="store_true", help="only a few seconds for those not known to pass, several at once"
    )
    arguments = parser.parse_intermixed_args()
    suite = SUITES[arguments.suite]
    broker = os.environ.get("MOLDAU_TEST_BROKER", "moldau")
    if broker == "apache":
        os.environ["KAFKA_LIBS"] = str(jars.kafka_libs())
    suite.prepare()
    report = runner.run(
        suite,
        broker,
        arguments.tests or None,
        everything=not arguments.quick,
        limit=arguments.limit,
        say=print,
    )
    if arguments.command == "update":
        return _update(suite, report)
    return 1 if report.lost else 0


def _update(suite: Suite, report: runner.Report) -> int:
    """Write what was found; a pass that is lost stays in the list and is an error."""
    written = listing.read(suite)  # again: the other broker may have been asked meanwhile
    lost = written.record(report.broker, report.found)
    written.only(suite.tests())
    listing.write(suite, written)
    for test in lost:
        print(f"no longer passes, and stays in the list until it is removed by hand: {test}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
