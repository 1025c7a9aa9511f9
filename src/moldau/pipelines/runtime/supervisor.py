"""Keeps a driver running: the process of `moldau pipeline run`.

It needs no Spark itself. A driver that dies is started again after a pause that doubles, and goes on from
the checkpoints; one that ends by itself has done its work or cannot do it. SIGTERM and Ctrl-C stop the
driver in order, a second time at once. The driver's errors go to the log of the run, its progress to the
terminal.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from moldau.pipelines.runtime.driver import BAD_DEFINITION, DONE, SOME_FAILED, RunSettings
from moldau.pipelines.runtime.restarts import Policy, Restarts
from moldau.pipelines.runtime.state import StateFolder

Announce = Callable[[str], None]
_LOG_LINES = 15


class Supervisor:
    def __init__(self, settings: RunSettings, announce: Announce) -> None:
        self._settings = settings
        self._announce = announce
        self._stopping = threading.Event()
        self._driver: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Run until everything has ended; the exit code."""
        folder = StateFolder(Path(self._settings.state_dir))
        restarts = Restarts(Policy(tries=self._settings.tries))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        with folder.supervised(self._settings.run) as log:
            while True:
                restarts.started(time.monotonic())
                code = self._run_driver(log)
                if code in (DONE, BAD_DEFINITION, SOME_FAILED) or self._stopping.is_set():
                    return min(code, 1) if code >= 0 else 0
                pause = restarts.failed(time.monotonic())
                self._tell_death(code, pause, log)
                if pause is None:
                    return 1
                self._stopping.wait(pause)

    def _run_driver(self, log: Path) -> int:
        command = [
            sys.executable,
            "-m",
            "moldau.pipelines.runtime.driver",
            json.dumps(asdict(self._settings)),
        ]
        with log.open("ab") as errors:
            self._driver = subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=errors, start_new_session=True
            )
            if self._stopping.is_set():
                self._driver.terminate()
            return self._driver.wait()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        again = self._stopping.is_set()
        self._stopping.set()
        if self._driver is not None and self._driver.poll() is None:
            self._driver.send_signal(signal.SIGKILL if again else signal.SIGTERM)

    def _tell_death(self, code: int, pause: float | None, log: Path) -> None:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        said = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        for line in said if code > 0 else ():
            self._announce(f"  {line}")
        what = "given up" if pause is None else f"started again in {pause:g} s"
        self._announce(f"The driver {how} and is {what}. Its log: {log}")
