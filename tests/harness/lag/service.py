"""`moldau lag --serve` as a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from moldau.local.ports import ReservedPorts


@contextmanager
def lag_service(bootstrap: str, *arguments: str, log: IO[str] | None = None) -> Iterator[int]:
    """Run the command; return its port."""
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    command = [sys.executable, "-m", "moldau", "lag", "--bootstrap-server", bootstrap, "--serve", str(port)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"Lag monitor is ready: http://127.0.0.1:{port}\n"
        yield port
    finally:
        process.terminate()
        code = process.wait(30)
        process.stdout.close()
    assert code == 0
