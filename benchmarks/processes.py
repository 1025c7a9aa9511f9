"""What a broker costs: CPU time and resident memory of its process and all processes below it.

Memory is what Linux calls RSS, added up; pages of mapped files count where they are mapped. Where processes
are forks of each other it is PSS instead, in which a page that several have counts once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.2


def cpu_seconds(pid: int) -> float:
    """User and system time, that of ended children included."""
    return sum(sum(map(int, _stat(each)[11:15])) for each in _family(pid)) / _TICKS


def memory_megabytes(pid: int) -> float:
    return sum(int(_stat(each)[21]) for each in _family(pid)) * _PAGE / 1e6


def unshared_megabytes(pid: int) -> float:
    """Memory of a family of forks."""
    return sum(_pss_kilobytes(each) for each in _family(pid)) * 1024 / 1e6


def _pss_kilobytes(pid: int) -> int:
    for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


@contextmanager
def peak_of(figure: Callable[[], float]) -> Iterator[Callable[[], float]]:
    """Look at a figure several times a second; the function given says the largest so far."""
    largest = figure()
    ended = threading.Event()

    def watch() -> None:
        nonlocal largest
        while not ended.wait(_SAMPLE_SECONDS):
            largest = max(largest, figure())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: largest
    finally:
        ended.set()
        thread.join()


def _family(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found.extend(map(int, _text(task).split()))
    return found


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold anything; zeros for a process that has just ended."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields or ["0"] * 50


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
