"""The suites by name."""

from __future__ import annotations

from tests.interop.suites import franz_go, kafka_python, librdkafka, rdkafka_crate
from tests.interop.suites.suite import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (kafka_python.SUITE, librdkafka.SUITE, franz_go.SUITE, rdkafka_crate.SUITE)
}
