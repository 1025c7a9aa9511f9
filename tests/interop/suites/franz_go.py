"""franz-go's tests of kgo that need a broker, one process per test.

They are found by their calls of the helpers that connect to the brokers in `KGO_SEEDS`. The tests of
kadm and of the other packages need no broker.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.interop.suites import packages
from tests.interop.suites.suite import CACHE, Command, Outcome, Ran, Suite

_MODULE = "github.com/twmb/franz-go"
_VERSION = "v1.22.2"
_PROGRAM = CACHE / f"kgo-{_VERSION}.test"
_CONNECTS = re.compile(r"\b(newTestClient|testClientOpts|tmpTopic\w*|getSeedBrokers|adm)\(")
_FUNCTION = re.compile(r"^func (Test\w+)\(.*?^}", re.MULTILINE | re.DOTALL)


def _folder() -> Path:
    return packages.go_module(_MODULE, _VERSION) / "pkg" / "kgo"


def _prepare() -> None:
    folder = _folder()
    if not _PROGRAM.exists():
        packages.build(["go", "test", "-c", "-o", str(_PROGRAM), "."], folder, "franz-go's tests")


def _tests() -> list[str]:
    return [
        function[1]
        for file in sorted(_folder().glob("*_test.go"))
        for function in _FUNCTION.finditer(file.read_text())
        if _CONNECTS.search(function[0])
    ]


def _command(test: str, bootstrap: str) -> Command:
    argv = [str(_PROGRAM), f"-test.run=^{test}$", "-test.v"]
    env = {**os.environ, "KGO_SEEDS": bootstrap, "KGO_TEST_RF": "1", "KGO_LOG_LEVEL": "none"}
    env["KGO_TEST_RECORDS"] = "50000"
    return Command(argv, CACHE, env)


def _verdict(test: str, ran: Ran) -> Outcome:
    if re.search(rf"^--- PASS: {test} ", ran.output, re.MULTILINE):
        return Outcome("pass")
    result = "skip" if re.search(rf"^--- SKIP: {test} ", ran.output, re.MULTILINE) else "fail"
    said = re.search(r"^ +\w+_test\.go:\d+: (.*)$|^panic: (.*)$", ran.output, re.MULTILINE)
    return Outcome(result, (said[1] or said[2]) if said else "the process ended without a result")


SUITE = Suite(
    name="franz-go",
    package=f"franz-go {_VERSION}, Go module (kgo)",
    prepare=_prepare,
    tests=_tests,
    command=_command,
    verdict=_verdict,
    timeout_seconds=180.0,
)
