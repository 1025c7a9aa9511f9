"""Driver processes with their JVM, Python daemons and workers."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.harness.waiting import eventually
from tests.pipelines.sink.copying import Settings

_MODULE = "tests.pipelines.sink.copying"


class Driver:
    """One run of the copying driver; its processes are killed at the end."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, settings.as_argument()],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._begin = self._log.stat().st_size

    def wait_started(self, timeout: float = 90) -> None:
        eventually(lambda: "started\n" in self.output() or self._ended(), timeout=timeout)
        assert self._process.poll() is None, self.output()[-5000:]

    def wait_ended(self, timeout: float = 180) -> None:
        assert self._process.wait(timeout) == 0, self.output()[-5000:]

    def output(self) -> str:
        return self._log.read_bytes()[self._begin :].decode(errors="replace")

    def kill_worker(self, chance: random.Random) -> bool:
        """Kill one of the Python workers."""
        pid = self._process.pid
        workers = eventually(lambda: [each for each in descendants(pid) if _is_worker(each)], what="a worker")
        return _kill(chance.choice(workers))

    def kill(self) -> None:
        """Kill the driver and its JVM. Workers run on until they notice: these must be fenced."""
        self._followers = [pid for pid in descendants(self._process.pid) if pid != self._process.pid]
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def _ended(self) -> bool:
        return self._process.poll() is not None

    def __enter__(self) -> Driver:
        self._followers: list[int] = []
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended():
            self.kill()
        deadline = time.monotonic() + 10
        while any(_alive(pid) for pid in self._followers) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in self._followers:
            _kill(pid)


def descendants(pid: int) -> Iterator[int]:
    """Yield the process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting = [pid]
    while waiting:
        waiting.extend(parents.get(found := waiting.pop(), ()))
        yield found


def _is_worker(pid: int) -> bool:
    """Whether a worker daemon has forked this process: one that Spark has started, or the fork server."""
    with contextlib.suppress(OSError):
        line = [pid, _parent(pid), _parent(_parent(pid))]
        commands = [Path(f"/proc/{each}/cmdline").read_bytes() for each in line]
        forked_by_daemon = all(b"spark.worker_daemon" in command for command in commands[:2])
        return forked_by_daemon or all(b"fork_server.server" in command for command in commands)
    return False


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _kill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
