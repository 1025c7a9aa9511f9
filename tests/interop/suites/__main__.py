"""`python -m tests.interop.suites`: run tests of other projects' suites, and update the lists.

`run SUITE [TEST ...]` runs tests and shows their results; `update SUITE [TEST ...]` also writes them into the
list. A test has the suite's time limit, or `--limit` seconds. With
`MOLDAU_TEST_BROKER=apache` both run against Apache Kafka.
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
    parser.add_argument("tests", nargs="*", metavar="TEST", help="default: all tests")
    parser.add_argument("--limit", type=float, help="seconds for one test, instead of the suite's own limit")
    parser.add_argument(
        "--quick", action="store_true", help="a short limit for tests not known to pass, several at once"
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
    """Write the results; a lost pass stays in the list and is an error."""
    written = listing.read(suite)  # Read again: results of the other broker may have been written meanwhile.
    lost = written.record(report.broker, report.found)
    written.only(suite.tests())
    listing.write(suite, written)
    for test in lost:
        print(f"no longer passes, and stays in the list until it is removed by hand: {test}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
