"""Scenario scripts: commands, `----`, what they print, a blank line; lines that begin with `#` are comments.

A script is a file of such blocks. `check` runs the commands of each block and compares what they print with
what the script says; with `REWRITE_SCENARIOS=1` it writes what they print into the script instead, for a
person to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

SEPARATOR = "----"


def check(path: Path, run: Callable[[str], list[str]]) -> None:
    """`run` carries out one command and gives the lines it prints."""
    text = path.read_text()
    written = "\n\n".join(_block(block, run) for block in text.strip().split("\n\n")) + "\n"
    if os.environ.get("REWRITE_SCENARIOS"):
        path.write_text(written)
    assert written == text


def _block(block: str, run: Callable[[str], list[str]]) -> str:
    lines = block.split("\n")
    commands = lines[: lines.index(SEPARATOR)] if SEPARATOR in lines else lines
    printed = [
        line for command in commands if command and not command.startswith("#") for line in run(command)
    ]
    if all(line.startswith("#") for line in commands):
        return "\n".join(commands)
    return "\n".join([*commands, SEPARATOR, *printed])
