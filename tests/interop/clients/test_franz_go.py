"""franz-go (kgo and kadm): one program with many checks."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop import jars

pytestmark = pytest.mark.interop

MODULE = Path(__file__).parents[1] / "go"

#: The names of the checks in the program.
CHECKS = [
    *(f"codec-{codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    *(f"acks-{acks}" for acks in ("0", "1", "all")),
    *re.findall(r'\{"([a-z-]+)", \w+\},', (MODULE / "main.go").read_text()),
]


@functools.cache
def program() -> Path | str:
    """Build the program, or skip with the reason."""
    if shutil.which("go") is None:
        return "Go is not installed (https://go.dev/dl)"
    built = jars.FOLDER / "franz-go"
    jars.FOLDER.mkdir(exist_ok=True)
    command = ["go", "build", "-o", str(built), "."]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, timeout=170, check=False)
    if done.returncode != 0 and "dial tcp" in done.stderr:
        return "the Go proxy cannot be reached"
    assert done.returncode == 0, done.stderr
    return built


@functools.cache
def results(bootstrap: str) -> dict[str, str]:
    built = program()
    if isinstance(built, str):
        pytest.skip(built)
    done = subprocess.run([str(built), bootstrap], capture_output=True, text=True, timeout=170, check=False)
    answers: dict[str, str] = {"": done.stderr[-1000:]}
    for line in done.stdout.splitlines():
        verdict, name, *reason = line.split(" ", 2)
        answers[name] = reason[0] if reason else verdict
    return answers


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("broker", ["apache", "moldau"])
def test_franz_go(broker: str, check: str, request: pytest.FixtureRequest) -> None:
    answers = results(request.getfixturevalue(broker).bootstrap_servers)
    assert answers.get(check, f"the program ended before this check: {answers['']}") == "PASS"
