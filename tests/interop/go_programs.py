"""Go programs, built when a test needs them: those of `tests/interop/go`, and published ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop import jars

_MODULE = Path(__file__).parent / "go"


def built(folder: str) -> Path:
    """Build the program in a folder of the module; skip the test if Go or its proxy is missing."""
    program = jars.FOLDER / f"franz-go-{folder}"
    _run_go("build", "-o", str(program), f"./{folder}")
    return program


def installed(package: str, version: str) -> Path:
    """Build a published program; skip the test if Go or its proxy is missing."""
    folder = jars.FOLDER / f"go-{version}"
    program = folder / package.rsplit("/", 1)[1]
    if not program.exists():
        _run_go("install", f"{package}@{version}", timeout=500, GOBIN=str(folder))
    return program


def _run_go(*words: str, timeout: float = 170, **environment: str) -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed (https://go.dev/dl)")
    jars.FOLDER.mkdir(exist_ok=True)
    done = subprocess.run(
        ["go", *words],
        cwd=_MODULE,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if "dial tcp" in done.stderr:
        pytest.skip("the Go proxy cannot be reached")
    assert done.returncode == 0, done.stderr
