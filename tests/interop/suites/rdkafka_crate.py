"""The `rdkafka` crate's integration tests (`tests/*.rs`), one process per test.

Some of them need a broker on port 9092.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from pathlib import Path

from tests.interop.suites import packages
from tests.interop.suites.suite import CACHE, Command, Outcome, Ran, Suite

_VERSION = "0.39.0"
_BUILT = CACHE / f"rdkafka-crate-{_VERSION}.json"


def _folder() -> Path:
    return packages.crate("rdkafka", _VERSION)


def _prepare() -> None:
    """Build the tests; a file next to the source maps names to programs."""
    if _BUILT.exists():
        return
    packages.need("cargo", "https://rustup.rs")
    packages.need("g++", "apt install build-essential")
    argv = ["cargo", "test", "--no-run", "--tests", "--locked", "-j1", "--message-format=json"]
    said = packages.build(argv, _folder(), "the rdkafka crate")
    artifacts = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    programs = {
        each["target"]["name"]: each["executable"]
        for each in artifacts
        if each.get("executable") and "test" in each["target"]["kind"]
    }
    _BUILT.write_text(json.dumps(programs))


@functools.cache
def _programs() -> dict[str, str]:
    return dict(json.loads(_BUILT.read_text()))


def _tests() -> list[str]:
    return [
        f"{name}::{test}"
        for name, program in sorted(_programs().items())
        if name != "utils"
        for test in re.findall(r"^(\S+): test$", _list(program), re.MULTILINE)
        if "utils::" not in test
    ]


def _list(program: str) -> str:
    argv = [program, "--list"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


def _command(test: str, bootstrap: str) -> Command:
    name, _, function = test.partition("::")
    argv = [_programs()[name], "--exact", function, "--test-threads=1"]
    return Command(argv, _folder(), {**os.environ, "KAFKA_HOST": bootstrap, "RUST_BACKTRACE": "0"})


def _verdict(_: str, ran: Ran) -> Outcome:
    if re.search(r"^test result: ok. 1 passed", ran.output, re.MULTILINE):
        return Outcome("pass")
    if " 1 ignored" in ran.output:
        return Outcome("skip", "ignored by the crate")
    said = re.search(r"panicked at [^\n]*\n([^\n]*)|^Error: ([^\n]*)", ran.output, re.MULTILINE)
    return Outcome("fail", (said[1] or said[2]) if said else "the process ended without a result")


SUITE = Suite(
    name="rdkafka-crate",
    package=f"rdkafka {_VERSION}, crate",
    prepare=_prepare,
    tests=_tests,
    command=_command,
    verdict=_verdict,
    config={"node.id": "0", "num.partitions": "3"},
    port=9092,
)
