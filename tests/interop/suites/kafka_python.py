"""kafka-python's integration tests (`test/integration` in its sdist), one process per test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.interop.jars import Missing
from tests.interop.suites import packages
from tests.interop.suites.suite import AUTHORIZER, CACHE, Command, Outcome, Ran, Suite

_VERSION = "3.0.12"
_CODECS = CACHE / f"kafka-python-{_VERSION}-codecs"
#: The newest broker version that this release of kafka-python knows.
_BROKER = "4.3.0"

#: Files missing from the sdist, reduced to what tests with a running broker need.
#: Without the first, Python's own package `test` would be imported.
_LEFT_OUT = {
    "__init__.py": "",
    "service.py": """\
class ExternalService:
    def __init__(self, host, port):
        pass

    def stop(self):
        pass

    dump_logs = stop


class SpawnedService:
    pass
""",
}


def _folder() -> Path:
    return packages.sdist("kafka-python", _VERSION)


def _prepare() -> None:
    for name, text in _LEFT_OUT.items():
        (_folder() / "test" / name).write_text(text)
    packages.wheels(_CODECS, "lz4", "python-snappy", "zstandard")


def _environment() -> dict[str, str]:
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    # A folder that must exist; it is used only for brokers that the tests start themselves.
    brokers = {"KAFKA_VERSION": _BROKER, "KAFKA_ROOT": str(CACHE)}
    return {**os.environ, **plugins, **brokers, "PYTHONPATH": str(_CODECS)}


def _pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_timeout", *arguments]


def _tests() -> list[str]:
    argv = _pytest("--collect-only", "-q", "test/integration")
    done = subprocess.run(
        argv, cwd=_folder(), env=_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    found = re.findall(r"^test/integration/(\S+::.+)$", done.stdout, re.MULTILINE)
    if not found:
        raise Missing(f"kafka-python's tests cannot be collected: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return found


def _command(test: str, bootstrap: str) -> Command:
    argv = _pytest("-rs", "--tb=short", f"test/integration/{test}")
    return Command(argv, _folder(), {**_environment(), "KAFKA_URI": f"kafka://{bootstrap}"})


def _verdict(_: str, ran: Ran) -> Outcome:
    if ran.code != 0:
        errors = re.findall(r"^E +(.*)$", ran.output, re.MULTILINE)
        return Outcome("fail", errors[0] if errors else "the process ended without a result")
    skipped = re.search(r"^SKIPPED \[\d+\] \S+ (.*)$", ran.output, re.MULTILINE)
    return Outcome("skip", skipped[1]) if skipped else Outcome("pass")


SUITE = Suite(
    name="kafka-python",
    package=f"kafka-python {_VERSION}, source distribution",
    prepare=_prepare,
    tests=_tests,
    command=_command,
    verdict=_verdict,
    at_once=1,  # Some tests share a transactional id and would fence each other.
    config={"node.id": "0", "num.partitions": "4", "group.min.session.timeout.ms": "3000", **AUTHORIZER},
)
