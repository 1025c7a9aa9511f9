"""The process of `moldau pipeline run`: it keeps a driver running, and does not import Spark.

A driver that dies is restarted after a delay that doubles, and continues from the checkpoints; a driver that
exits with a known code has finished, or cannot succeed. The first SIGTERM or Ctrl-C stops the driver
gracefully, the second one kills it. The driver's stderr is the log of the run, its stdout the terminal.
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
        """Run until all pipelines have ended; return the exit code."""
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
                delay = restarts.failed(time.monotonic())
                self._announce_exit(code, delay, log)
                if delay is None:
                    return 1
                self._stopping.wait(delay)

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

    def _announce_exit(self, code: int, delay: float | None, log: Path) -> None:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        for line in lines if code > 0 else ():
            self._announce(f"  {line}")
        what = "is not restarted" if delay is None else f"restarts in {delay:g} s"
        self._announce(f"The driver {how} and {what}. Its log: {log}")
