"""`moldau registry` as a process on a port that is known before it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from moldau.local.ports import ReservedPorts


def choose_port() -> int:
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    return port


class RegistryProcess:
    """A registry that can be stopped, paused and started again on its port."""

    def __init__(self, bootstrap: str, port: int, settings: Mapping[str, str] | None = None) -> None:
        self._command = [sys.executable, "-m", "moldau", "registry", "--bootstrap-server", bootstrap]
        self._command += ["--port", str(port)]
        for name, value in (settings or {}).items():
            self._command += ["--set", f"{name}={value}"]
        self.url = f"http://127.0.0.1:{port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self._process = process
        assert process.stdout is not None
        assert "is ready" in process.stdout.readline()

    def stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        code = process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
        assert code == 0


@contextmanager
def running_registry(
    bootstrap: str, port: int | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[RegistryProcess]:
    registry = RegistryProcess(bootstrap, port or choose_port(), settings)
    try:
        registry.start()
        yield registry
    finally:
        registry.stop()
