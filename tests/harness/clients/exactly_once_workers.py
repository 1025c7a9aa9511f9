"""Processes of `exactly_once_worker` that can be killed."""

from __future__ import annotations

import subprocess
import sys


class Workers:
    """Worker processes with fixed transactional ids; a killed one is replaced."""

    def __init__(self, count: int, *arguments: str) -> None:
        """`arguments` are those of `exactly_once_worker`, without the transactional id."""
        self._arguments = arguments
        self._processes = [self._start(place) for place in range(count)]

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        module = "tests.harness.clients.exactly_once_worker"
        return subprocess.Popen([sys.executable, "-m", module, *self._arguments, f"worker-{place}"])

    def kill(self, place: int) -> None:
        self._processes[place].kill()
        self._processes[place].wait()
        self._processes[place] = self._start(place)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
