"""Run the tests of a suite against one broker and compare with the committed list.

Several tests run at once, because they mostly wait. A test that was expected to pass and failed is retried
alone. Tests known not to pass have a short time limit, to detect new passes: most of them would wait in vain.
`everything` gives them the full limit. The output of a test is in the cache, under `logs/`.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster, free_port
from tests.interop import jars
from tests.interop.suites import listing
from tests.interop.suites.suite import CACHE, Outcome, Ran, Suite

#: For tests that are known not to pass.
_HOPELESS_SECONDS = 12.0
#: If more tests failed than this, they are not retried: concurrency is not the cause.
_SECOND_TRIES = 5
_REASON_LENGTH = 90
_TIMED_OUT = "no end within {:.0f} s"


@dataclass
class Report:
    """The results of a run, and the listed results."""

    suite: Suite
    broker: str
    known: listing.Listing
    found: dict[str, Outcome] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def lost(self) -> dict[str, Outcome]:
        """Tests that passed before and do not pass now."""
        passes = set(self.known.passes(self.broker))
        return {test: found for test, found in self.found.items() if test in passes and not found.passed}

    @property
    def gained(self) -> list[str]:
        passes = set(self.known.passes(self.broker))
        return [test for test, found in self.found.items() if found.passed and test not in passes]

    def __str__(self) -> str:
        now = sum(found.passed for found in self.found.values())
        lists = ", ".join(f"{broker} {len(self.known.passes(broker))}" for broker in listing.BROKERS)
        total, minutes = len(self.known.results), sum(self.seconds.values()) / 60
        return f"{self.suite.name}: {now} on {self.broker} now; listed {lists}; of {total}; {minutes:.1f} min"


#: The reports of this process, for the table at the end.
REPORTS: list[Report] = []


class Brokers:
    """Nodes for one suite, one for each set of configs that its tests need; started on demand."""

    def __init__(self, suite: Suite, broker: str) -> None:
        self._suite = suite
        self._broker = broker
        self._nodes: dict[frozenset[tuple[str, str]], str] = {}
        self._stack = ExitStack()

    def address(self, test: str) -> str:
        extra = self._suite.test_config(test)
        key = frozenset(extra.items())
        if key not in self._nodes:
            self._nodes[key] = self._start({**self._suite.config, **extra})
        return self._nodes[key]

    def _start(self, config: Mapping[str, str]) -> str:
        """Start a node with an explicitly advertised address, as the projects' scripts do."""
        port = _fixed_port(self._suite.port) or free_port()
        config = {**config, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        if self._broker == "apache":
            apache = ApacheCluster(config=config)
            apache.port = port
            return self._stack.enter_context(apache).bootstrap_servers
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"}
        return self._stack.enter_context(Cluster(config={**config, **listeners})).bootstrap_servers

    def __enter__(self) -> Brokers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def run(
    suite: Suite,
    broker: str,
    tests: Iterable[str] | None = None,
    *,
    everything: bool = False,
    limit: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run these tests, or all, each within the limit; `say` is called with each result."""
    report = Report(suite, broker, listing.read(suite))
    wanted = list(tests) if tests is not None else suite.tests()
    hopeless = [] if everything else [t for t in wanted if not report.known.outcome(t, broker).passed]
    hopeful = [test for test in wanted if test not in hopeless]
    with Brokers(suite, broker) as brokers:
        addresses = {test: brokers.address(test) for test in wanted}
        full = limit or suite.timeout_seconds
        runs = ((hopeful, full), (hopeless, limit or _HOPELESS_SECONDS))
        for group, patience in runs:
            _run_into(report, group, addresses, suite.at_once, patience, say)
        again = [test for test in hopeful if report.found[test].result == "fail"]
        if len(again) <= _SECOND_TRIES:
            _run_into(report, again, addresses, 1, full, say)
    return report


def _run_into(
    report: Report,
    tests: list[str],
    addresses: Mapping[str, str],
    at_once: int,
    limit: float,
    say: Callable[[str], None],
) -> None:
    def one(test: str) -> tuple[str, Outcome, float]:
        begun = time.monotonic()
        outcome = _run_test(report.suite, report.broker, test, addresses[test], limit)
        return test, outcome, time.monotonic() - begun

    with ThreadPoolExecutor(at_once) as pool:
        for test, outcome, seconds in pool.map(one, tests):
            report.found[test], report.seconds[test] = outcome, seconds
            say(f"{outcome.result}  {seconds:5.1f} s  {test}  {outcome.reason}")


def _run_test(suite: Suite, broker: str, test: str, address: str, limit: float) -> Outcome:
    command = suite.command(test, address)
    log = CACHE / "logs" / suite.name / broker / (re.sub(r"[^\w.-]+", "_", test) + ".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return Outcome("fail", _TIMED_OUT.format(limit))
        finally:
            _end(process)
    outcome = suite.verdict(test, Ran(code, log.read_text(errors="replace")))
    reason = " ".join(outcome.reason.replace("|", "/").split())
    return Outcome(outcome.result, reason[:_REASON_LENGTH])


def _fixed_port(port: int) -> int:
    with socket.socket() as probe:
        if port and probe.connect_ex(("127.0.0.1", port)) == 0:
            raise jars.Missing(f"port {port} is in use, and tests of this suite need it")
    return port


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the test and all processes it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def log_folder(suite: Suite, broker: str) -> Path:
    return CACHE / "logs" / suite.name / broker
