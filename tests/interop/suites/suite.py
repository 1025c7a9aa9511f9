"""What a suite is to the runner: its package, its brokers' settings, how one test is run and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.interop.jars import FOLDER

#: Packages, builds and what the tests said; `make clean` removes it.
CACHE = FOLDER / "suites"

#: Apache Kafka with ACLs, everything allowed that no ACL forbids.
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
    """What a test's process left: its exit code and all it said."""

    code: int
    output: str


@dataclass(frozen=True)
class Suite:
    """`prepare` brings and builds the package, or raises `jars.Missing` with what the machine lacks."""

    name: str
    package: str
    prepare: Callable[[], None]
    tests: Callable[[], list[str]]
    #: Of a test's name and the broker's address.
    command: Callable[[str, str], Command]
    verdict: Callable[[str, Ran], Outcome]
    #: What the project's own scripts set on the brokers they test with.
    config: Mapping[str, str] = field(default_factory=dict)
    #: Of it, what Moldau does not start with yet; with it Apache Kafka shows what is to be reached.
    apache_config: Mapping[str, str] = field(default_factory=dict)
    #: Settings that a test wants beside those; tests that want the same share a broker.
    test_config: Callable[[str], Mapping[str, str]] = lambda _: {}
    timeout_seconds: float = 60.0
    #: How many run at the same time; most of their time they wait.
    at_once: int = 4
    #: Where the broker must listen, if a test has the port written in.
    port: int = 0
