"""A server process in a temporary folder, as an unprivileged user if the tests run as root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from moldau.local.ports import ReservedPorts
from tests.harness.waiting import eventually

_USER = "nobody"


def find_program(name: str, package: str, folders: Sequence[str] = ()) -> str:
    """Return the path of a program; skip the test if the package is missing."""
    search = os.pathsep.join([*folders, os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=search)
    if found is None:
        pytest.skip(f"{name} is missing; on Debian or Ubuntu: apt-get install {package}")
    return found


def free_port() -> int:
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    return port


class ServerProcess:
    """A folder that the server's user may write, and the process."""

    def __init__(self, stop_signal: signal.Signals = signal.SIGTERM) -> None:
        self._stop_signal = stop_signal
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-database-"))
        self.port = free_port()
        self.user = _USER if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        path = self.folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, command: Sequence[str]) -> None:
        """Run a command as the server's user to its end."""
        done = subprocess.run(
            command,
            user=self.user,
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def start(self, command: Sequence[str], ready: Callable[[], bool], timeout: float = 60) -> None:
        with (self.folder / "server.log").open("ab") as output:
            self._process = process = subprocess.Popen(
                command,
                user=self.user,
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        eventually(
            lambda: process.poll() is not None or ready(),
            timeout=timeout,
            what=f"{command[0]} is ready: {self.log}",
        )
        assert process.poll() is None, self.log

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(self._stop_signal)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        """End the process at once: its data is deleted."""
        self._stop_signal = signal.SIGKILL
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
