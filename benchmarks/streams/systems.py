"""The systems under test, each as a process that runs one program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import family
from benchmarks.streams.session import HEAP
from tests.interop import jars

JAVA, API, SQL = "Kafka Streams", "streams API", "SQL"
_SOURCE = Path(__file__).parent / "StreamsPrograms.java"


@dataclass(frozen=True, slots=True)
class System:
    name: str
    command: Callable[[], Sequence[str]]
    settings: Sequence[str] = ()


class Application:
    """One program of one system, in its own folder, with its own topics."""

    def __init__(self, system: System, program: str, servers: str, folder: Path, name: str) -> None:
        self._arguments = (servers, name, str(folder / "state"), program, name, *system.settings)
        self._system = system
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the application is not running")
        return self._process.pid

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [*self._system.command(), *self._arguments]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def check(self) -> None:
        """Exit with the end of the log if the process has exited."""
        if self._process is not None and self._process.poll() is not None:
            sys.exit(f"{self._system.name} has ended: {self._log.read_text()[-3000:]}")

    def kill(self) -> None:
        """Kill the process and its descendants."""
        if self._process is None:
            return
        for each in family(self._process.pid):
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait(30)
        self._process = None


def systems() -> list[System]:
    return [System(JAVA, _java), System(API, _python("programs")), System(SQL, _python("statements"))]


def _java() -> Sequence[str]:
    libs = jars.streams_libs()
    classes = jars.compiled(_SOURCE, libs, f"streams-{jars.KAFKA}")
    return ("java", f"-Xmx{HEAP}", "-cp", f"{classes}:{libs}/*", _SOURCE.stem)


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: (sys.executable, "-m", f"benchmarks.streams.{module}")
