"""What a process costs: CPU time and resident memory, of the process and its children."""

from __future__ import annotations

import os
import subprocess


def cpu_seconds(pid: int) -> float:
    return sum(_seconds(_field(each, "time")) for each in _family(pid))


def resident_megabytes(pid: int) -> float:
    return sum(int(_field(each, "rss")) for each in _family(pid)) / 1024


def _family(pid: int) -> list[int]:
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return [pid, *map(int, children.split())]


def _field(pid: int, name: str) -> str:
    if name == "time" and os.path.exists(f"/proc/{pid}/stat"):
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return str((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    command = ["ps", "-o", f"{name}=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "0"


def _seconds(text: str) -> float:
    """Seconds as a number, or as `ps` prints them: [[dd-]hh:]mm:ss."""
    seconds = 0.0
    for part in text.replace("-", ":").split(":"):
        seconds = seconds * 60 + float(part)
    return seconds
