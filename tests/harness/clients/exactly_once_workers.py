"""Workers of a read-process-write loop as processes that can be killed; see `exactly_once_worker`."""

from __future__ import annotations

import subprocess
import sys


class Workers:
    """Processes that share the work; each has its place, and a successor when it is killed."""

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
