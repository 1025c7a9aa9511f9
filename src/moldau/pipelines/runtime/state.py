"""The state folder, in which other processes find the status of pipelines.

    <state folder>/<pipeline>/status.json    the status, replaced atomically
    <state folder>/<pipeline>/stop           a request to stop
    <state folder>/<pipeline>/lock           held by the driver that runs the pipeline
    <state folder>/<pipeline>/checkpoint*    the checkpoints, unless the definition names another place
    <state folder>/.runs/<run>.lock          held by the supervisor of a run
    <state folder>/.runs/<run>.log           the log of Spark and the driver of a run

The operating system releases a lock when its process ends, so locks tell which pipelines are running.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

#: Final states.
ENDED = ("stopped", "finished", "failed")


class AlreadyRunning(RuntimeError):
    """Another process runs the pipeline."""


@dataclass(slots=True)
class Status:
    """The status of a pipeline."""

    name: str
    #: starting, running, waiting (for a restart), or one of `ENDED`.
    state: str = "starting"
    file: str = ""
    #: The id of the run, and its processes.
    run: str = ""
    supervisor: int = 0
    driver: int = 0
    since_ms: int = 0
    updated_ms: int = 0
    restarts: int = 0
    error: str | None = None
    #: A `progress.Summary` of each query.
    queries: list[dict[str, Any]] = field(default_factory=list)
    #: Its output, if that is known: `topic` and its `role`, or a Spark `format` and its `path`.
    sinks: list[dict[str, str]] = field(default_factory=list)
    checks: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0


class StateFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, name: str) -> Path:
        return self.folder / name

    def names(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob("*/status.json"))

    def read(self, name: str) -> Status | None:
        try:
            values = json.loads((self.of(name) / "status.json").read_text())
        except FileNotFoundError:
            return None
        known = {key: value for key, value in values.items() if key in Status.__dataclass_fields__}
        status = Status(**known)
        if status.state not in ENDED and not self.is_alive(status.run):
            status.state = "dead"
        return status

    def write(self, status: Status) -> None:
        folder = self.of(status.name)
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f"status.{os.getpid()}"
        written.write_text(json.dumps(asdict(status)))
        written.replace(folder / "status.json")

    def request_stop(self, name: str) -> None:
        (self.of(name) / "stop").touch()

    def stop_requested(self, name: str) -> bool:
        return (self.of(name) / "stop").exists()

    def clear_stop(self, name: str) -> None:
        (self.of(name) / "stop").unlink(missing_ok=True)

    def is_alive(self, run: str) -> bool:
        """Return whether the supervisor of a run is alive."""
        try:
            with (self._runs / f"{run}.lock").open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def log_of(self, run: str) -> Path:
        return self._runs / f"{run}.log"

    @contextlib.contextmanager
    def supervised(self, run: str) -> Iterator[Path]:
        """Hold the lock of a run; yield its log file. Keep the last ten logs and delete older ones."""
        self._runs.mkdir(parents=True, exist_ok=True)
        for old in sorted(self._runs.glob("*.log"), key=lambda path: path.stat().st_mtime)[:-9]:
            old.unlink(missing_ok=True)
        lock = self._runs / f"{run}.lock"
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield self.log_of(run)
            finally:
                lock.unlink(missing_ok=True)

    @contextlib.contextmanager
    def running(self, names: Iterable[str]) -> Iterator[None]:
        """Hold the locks of these pipelines."""
        with contextlib.ExitStack() as stack:
            for name in names:
                stack.enter_context(self._lock(name))
            yield

    @property
    def _runs(self) -> Path:
        return self.folder / ".runs"

    def _lock(self, name: str) -> IO[str]:
        self.of(name).mkdir(parents=True, exist_ok=True)
        file = (self.of(name) / "lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            status = self.read(name)
            who = f" by process {status.supervisor}" if status is not None else ""
            raise AlreadyRunning(
                f"the pipeline {name} is already run{who}; to stop it: moldau pipeline stop {name}"
            ) from None
        return file
