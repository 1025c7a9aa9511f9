"""librdkafka's tests (`tests/` in Debian's source package), one process per test.

Tests that need no broker are excluded. A few need a broker without topic auto-creation. They run in quick
mode, unless that would skip sub-tests: some would pass without having done anything. If they call Kafka's
tools, they get Moldau's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.interop.suites import librdkafka_security as security
from tests.interop.suites import packages
from tests.interop.suites.suite import AUTHORIZER, CACHE, Command, Outcome, Ran, Suite

_VERSION = "2.0.2"
_TOOLS = CACHE / "librdkafka-tools"
_TOOL = """\
#!/bin/sh
exec {python} -m moldau {name} "$@"
"""
_DECLARED = re.compile(r"^    _TEST\((\w+),(.*?)(?=^    _TEST\(|^#|^\};|^    /\*)", re.MULTILINE | re.DOTALL)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def _folder() -> Path:
    return packages.debian_source("librdkafka", _VERSION)


def _prepare() -> None:
    source = _folder()
    _make_tools()
    if (source / "tests" / "test-runner").exists():
        return
    for program in ("gcc", "g++", "make"):
        packages.need(program, "apt install build-essential")
    # Some tests parse statistics with RapidJSON and would be skipped without it. Its headers cause
    # warnings, which would be errors if they were not system headers.
    headers = f"--CPPFLAGS=-isystem{packages.debian_headers('rapidjson-dev')}"
    packages.build(["./configure", "--disable-optimization", headers], source, "librdkafka")
    packages.build(["make", "libs"], source, "librdkafka")
    packages.build(["make", "-C", "tests", "test-runner"], source, "librdkafka's tests")


def _make_tools() -> None:
    """Make the part of Kafka's `bin/` folder that the tests use."""
    folder = _TOOLS / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("kafka-topics", "kafka-acls"):
        tool = folder / f"{name}.sh"
        tool.write_text(_TOOL.format(python=sys.executable, name=name))
        tool.chmod(0o755)


def _declarations() -> dict[str, str]:
    text = (_folder() / "tests" / "test.c").read_text()
    table = text[text.index("struct test tests[]") :]
    found = dict(_DECLARED.findall(table))
    return {name: rest for name, rest in found.items() if "TEST_F_LOCAL" not in rest and "MANUAL" not in rest}


def _scenario(test: str) -> str:
    return "noautocreate" if '"noautocreate"' in _declarations()[test] else "default"


def _test_config(test: str) -> Mapping[str, str]:
    created = {"auto.create.topics.enable": "false"} if _scenario(test) == "noautocreate" else {}
    return created | security.node_config(test)


def _has_slow_parts(number: str) -> bool:
    (source,) = (_folder() / "tests").glob(f"{number}-*.c*")
    text = source.read_text()
    return "SUB_TEST(" in text or "skipped due to quick mode" in text


def _command(test: str, bootstrap: str) -> Command:
    configuration = CACHE / "librdkafka-conf" / f"{test}.conf"
    configuration.parent.mkdir(exist_ok=True)
    lines = {"bootstrap.servers": bootstrap, "test.topic.random": "true", **security.client_config(test)}
    configuration.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    number = test.partition("_")[0]
    quick = [] if _has_slow_parts(number) else ["-Q"]
    argv = ["./test-runner", *quick, "-L", "-p1", "-V", "4.3.0", "-s", _scenario(test)]
    env = {**os.environ, "TESTS": number, "RDKAFKA_TEST_CONF": str(configuration)}
    env |= {"KAFKA_PATH": str(_TOOLS), "BROKERS": bootstrap, **security.environment(test)}
    env["LD_LIBRARY_PATH"] = f"{_folder()}/src:{_folder()}/src-cpp"
    return Command(argv, _folder() / "tests", env)


def _verdict(test: str, ran: Ran) -> Outcome:
    said = _COLOURS.sub("", ran.output)
    if f"= Test {test} PASSED =" in said:
        return Outcome("pass")
    skipped = re.search(rf"^\[{test} */.*SKIPPING TEST: (.*)$", said, re.MULTILINE)
    if skipped:
        return Outcome("skip", skipped[1])
    failed = re.search(rf'^### Test "{test}[ "].*failed at .*\n(.*)$', said, re.MULTILINE)
    return Outcome("fail", failed[1] if failed else "the process ended without a result")


SUITE = Suite(
    name="librdkafka",
    package=f"librdkafka {_VERSION}, Debian's source package",
    prepare=_prepare,
    tests=lambda: list(_declarations()),
    command=_command,
    verdict=_verdict,
    config={"num.partitions": "4", "group.initial.rebalance.delay.ms": "500", **AUTHORIZER},
    test_config=_test_config,
    timeout_seconds=120.0,
)
