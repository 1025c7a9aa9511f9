"""CPU time and memory of a broker: of its process and all descendants.

Memory is the sum of the resident set sizes (RSS), which include pages of mapped files. For processes that are
forks of each other it is the proportional set size (PSS), which counts shared pages once.
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
    """Return user and system time, including that of exited children."""
    return sum(sum(map(int, _stat(each)[11:15])) for each in family(pid)) / _TICKS


def undisturbed(costs: list[float]) -> float:
    """Return the sum without the highest third: in those turns, other work slowed the machine."""
    return sum(sorted(costs)[: len(costs) - len(costs) // 3])


def memory_megabytes(pid: int) -> float:
    return sum(int(_stat(each)[21]) for each in family(pid)) * _PAGE / 1e6


def unshared_megabytes(pid: int) -> float:
    """Return the PSS of a tree of forked processes."""
    return sum(_pss_kilobytes(each) for each in family(pid)) * 1024 / 1e6


def _pss_kilobytes(pid: int) -> int:
    for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


@contextmanager
def peak_of(figure: Callable[[], float], seconds: float = _SAMPLE_SECONDS) -> Iterator[Callable[[], float]]:
    """Sample a value every `seconds`; yield a function that returns the maximum so far."""
    largest = figure()
    ended = threading.Event()

    def watch() -> None:
        nonlocal largest
        while not ended.wait(seconds):
            largest = max(largest, figure())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: largest
    finally:
        ended.set()
        thread.join()


def family(pid: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found.extend(map(int, _text(task).split()))
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields after the process name, which may contain spaces; zeros if the process has exited."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields or ["0"] * 50


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
