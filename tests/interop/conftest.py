"""A node of Moldau and one of Apache Kafka, for clients and tools in Java and Go.

Every test runs against both: a difference needs an explanation. With
`MOLDAU_TEST_BROKER=apache` both are Apache Kafka, which validates the tests. The table at the end lists what
passed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster, java_command
from tests.harness.apache.tool_pairs import Tools
from tests.interop import jars
from tests.interop.suites import runner

Node = Cluster | ApacheCluster
_outcomes: dict[str, str] = {}


@pytest.fixture(scope="session", autouse=True)
def libs() -> Path:
    """The folder with Apache Kafka's jars; sets `KAFKA_LIBS`, too."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed (apt install default-jdk-headless)")
    try:
        folder = jars.kafka_libs()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    os.environ["KAFKA_LIBS"] = str(folder)
    return folder


@pytest.fixture(scope="module", params=["apache", "moldau"])
def tools(
    request: pytest.FixtureRequest, libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tools]:
    with ApacheCluster(libs=libs) if request.param == "apache" else Cluster() as node:
        yield Tools(node, libs, tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def apache(libs: Path) -> Iterator[ApacheCluster]:
    with ApacheCluster(libs=libs) as node:
        yield node


@pytest.fixture(scope="session")
def moldau(libs: Path) -> Iterator[Node]:
    apache_instead = os.environ.get("MOLDAU_TEST_BROKER") == "apache"
    with ApacheCluster(libs=libs) if apache_instead else Cluster() as node:
        yield node


class JavaTool:
    """Run one of Kafka's tools; return its output and exit code."""

    def __init__(self, libs: Path) -> None:
        self._libs = libs

    def __call__(self, main: str, *arguments: str, stdin: str = "", timeout: float = 90) -> tuple[str, int]:
        command = java_command(self._libs, main, *arguments)
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
        )
        self.stderr = done.stderr
        return done.stdout, done.returncode


@pytest.fixture
def tool(libs: Path) -> JavaTool:
    return JavaTool(libs)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "tests/interop/" not in report.nodeid:
        return
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.nodeid] = report.outcome


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _outcomes:
        return
    terminalreporter.section("interop: results")
    rows = [(*_client_and_scene(nodeid), outcome) for nodeid, outcome in _outcomes.items()]
    width = max(len(client) for client, _, _ in rows)
    for client, scene, outcome in sorted(rows):
        terminalreporter.write_line(f"{client:<{width}}  {outcome:<7}  {scene}")
    if runner.REPORTS:
        terminalreporter.section("suites of other projects: passed now, and according to the lists")
    for report in runner.REPORTS:
        terminalreporter.write_line(str(report))


def _client_and_scene(nodeid: str) -> tuple[str, str]:
    file, _, test = nodeid.partition("::")
    return Path(file).stem.removeprefix("test_").replace("_", " "), test.removeprefix("test_").replace(
        "_", " "
    )
