"""The Go programs of `tests/interop/go`, built when a test needs them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop import jars

_MODULE = Path(__file__).parent / "go"


def built(folder: str) -> Path:
    """Build the program in a folder of the module; skip the test if Go or its proxy is missing."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed (https://go.dev/dl)")
    jars.FOLDER.mkdir(exist_ok=True)
    program = jars.FOLDER / f"franz-go-{folder}"
    command = ["go", "build", "-o", str(program), f"./{folder}"]
    done = subprocess.run(command, cwd=_MODULE, capture_output=True, text=True, timeout=170, check=False)
    if "dial tcp" in done.stderr:
        pytest.skip("the Go proxy cannot be reached")
    assert done.returncode == 0, done.stderr
    return program
