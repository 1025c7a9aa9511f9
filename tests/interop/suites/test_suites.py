"""The integration tests of kafka-python, librdkafka, franz-go and the rdkafka crate, against Moldau.

Listed passes must pass; new passes are reported and belong in the list.
With `MOLDAU_TEST_BROKER=apache` the tests run against Apache Kafka and its column. `MOLDAU_SUITES=all` gives
every test its full time limit, also those known not to pass. See `suites/`.
"""

from __future__ import annotations

import os
import warnings

import pytest

from tests.interop import jars
from tests.interop.suites import runner
from tests.interop.suites.catalog import SUITES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

BROKER = os.environ.get("MOLDAU_TEST_BROKER", "moldau")
EVERYTHING = os.environ.get("MOLDAU_SUITES") == "all"


@pytest.mark.parametrize("name", SUITES)
def test_listed_tests_pass(name: str) -> None:
    suite = SUITES[name]
    try:
        suite.prepare()
        report = runner.run(suite, BROKER, everything=EVERYTHING, say=print)
    except jars.Missing as missing:
        pytest.skip(str(missing))
    runner.REPORTS.append(report)
    if report.gained:
        warnings.warn(
            f"new passes: {', '.join(report.gained)}; run: python -m tests.interop.suites update {name}",
            stacklevel=1,
        )
    assert not report.lost, f"see {runner.log_folder(suite, BROKER)}: {report.lost}"
