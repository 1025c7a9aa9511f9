"""Memory and open files of a running process, from Linux' /proc."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ON_LINUX = sys.platform == "linux"


def anonymous_memory(pid: int) -> int:
    """Return the anonymous resident memory in bytes, without mapped files."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no RssAnon in /proc/{pid}/status")


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def limit_open_files(pid: int, limit: int) -> None:
    import resource  # `prlimit` exists on Linux only

    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
