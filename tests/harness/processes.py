"""Processes that a process started, by their command lines."""

from __future__ import annotations

from pathlib import Path


def descendants(pid: int) -> dict[int, str]:
    """Return the children of a process and theirs, with their command lines."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, _text(task).split())
    return {each: _text(Path(f"/proc/{each}/cmdline")).replace("\0", " ") for each in found[1:]}


def _text(path: Path) -> str:
    """Return the content of a file; nothing if the process has ended."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
