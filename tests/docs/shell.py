"""The commands of a document, run as a reader types them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ADDRESS = "localhost:9092"


class Shell:
    """A shell in `folder` with Moldau's commands on the path; commands use the port of a test broker."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.address = f"localhost:{port}"
        commands = Path(sys.executable).parent
        self._environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}

    def open(self, line: str) -> subprocess.Popen[str]:
        """Run a command that continues until it is stopped."""
        return subprocess.Popen(
            ["bash", "-c", f"exec {line}"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line.replace(ADDRESS, self.address)],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout
