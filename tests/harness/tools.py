"""Our command-line tools as a user runs them: in a process of their own."""

from __future__ import annotations

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
    """Run a tool to its end; it never shows a traceback."""
    done = subprocess.run(
        tool_command(name, *argv), input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return ToolRun(done.returncode, done.stdout, done.stderr)
