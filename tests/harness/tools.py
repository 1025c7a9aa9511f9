"""Moldau's command-line tools, each run in its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import NamedTuple


class ToolRun(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def tool_command(name: str, *argv: str) -> list[str]:
    return [sys.executable, "-m", "moldau", name, *argv]


def run_tool(name: str, *argv: str, stdin: str = "", timeout: float = 60.0) -> ToolRun:
    """Run a tool until it exits; it must not print a traceback."""
    done = subprocess.run(
        tool_command(name, *argv), input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return ToolRun(done.returncode, done.stdout, done.stderr)


class Tools:
    """Run tools with the address of a node."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(self, name: str, *argv: str, stdin: str = "") -> ToolRun:
        return run_tool(name, "--bootstrap-server", self.bootstrap, *argv, stdin=stdin)

    def good(self, name: str, *argv: str, stdin: str = "") -> list[str]:
        """Run a tool that must succeed and return its lines."""
        done = self.run(name, *argv, stdin=stdin)
        assert done.code == 0, done
        return done.lines

    def create(self, topic: str, partitions: int = 1, *configs: str) -> None:
        more = [word for config in configs for word in ("--config", config)]
        self.good("kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions), *more)

    def produce(self, topic: str, text: str, *argv: str) -> None:
        self.good("kafka-console-producer", "--topic", topic, *argv, stdin=text)

    def consume(self, topic: str, count: int, *argv: str) -> list[str]:
        limit = ("--max-messages", str(count), "--timeout-ms", "20000")
        lines = self.good("kafka-console-consumer", "--topic", topic, *limit, *argv)
        assert len(lines) == count
        return lines

    def offsets(self, topic: str, *argv: str) -> list[str]:
        return self.good("kafka-get-offsets", "--topic", re.escape(topic), *argv)
