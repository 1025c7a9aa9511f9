"""The definition of a suite: its package, its broker configs, and how one test is run and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.interop.jars import FOLDER

#: Packages, builds and test output; `make clean` removes it.
CACHE = FOLDER / "suites"

#: A broker with ACLs; everything is allowed if no ACL is found.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class Outcome(NamedTuple):
    """`result` is pass, fail or skip; the reason is a few words, empty for a pass."""

    result: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.result}: {self.reason}" if self.reason else self.result

    @classmethod
    def parse(cls, text: str) -> Outcome:
        result, _, reason = text.strip().partition(":")
        return cls(result, reason.strip())

    @property
    def passed(self) -> bool:
        return self.result == "pass"


class Command(NamedTuple):
    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]


class Ran(NamedTuple):
    """The exit code and the output of a test's process."""

    code: int
    output: str


@dataclass(frozen=True)
class Suite:
    """`prepare` downloads and builds the package, or raises `jars.Missing` with the missing requirement."""

    name: str
    package: str
    prepare: Callable[[], None]
    tests: Callable[[], list[str]]
    #: From a test's name and the broker's address.
    command: Callable[[str, str], Command]
    verdict: Callable[[str, Ran], Outcome]
    #: Broker configs in the project's own scripts.
    config: Mapping[str, str] = field(default_factory=dict)
    #: Additional configs by test; tests with the same ones share a broker.
    test_config: Callable[[str], Mapping[str, str]] = lambda _: {}
    timeout_seconds: float = 60.0
    #: The number of concurrent tests; they mostly wait.
    at_once: int = 4
    #: The port of the broker, if a test hard-codes it.
    port: int = 0
