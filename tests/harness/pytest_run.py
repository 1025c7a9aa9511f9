"""pytest in a separate process, as a user's project runs it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest; the plugin is named in case the installed version has no entry point for it."""
    installed = any(entry.value == "moldau.testing.pytest_plugin" for entry in entry_points(group="pytest11"))
    named = [] if installed else ["-p", "moldau.testing.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
