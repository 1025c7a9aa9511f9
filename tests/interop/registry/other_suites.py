"""Runs the test suites of other projects, which are not part of this one, against our services."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: Karapace's tests wait for an endpoint that Confluent's registry does not have, each expects a registry
#: without subjects, and the code of incompatible schemas is that of Confluent's registry before 8.2.
_PLUGIN = """\
import json
import urllib.error
import urllib.parse
import urllib.request

import karapace.core.client
import tests.utils

class Result(karapace.core.client.Result):
    def __init__(self, status, json_result, headers=None):
        if isinstance(json_result, dict) and json_result.get("error_code") == 40901:
            json_result["error_code"] = 409
        super().__init__(status, json_result, headers)

karapace.core.client.Result = Result

async def _at_once(client):
    pass

tests.utils.repeat_until_master_is_available = _at_once

def _ask(method, url):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
            return json.load(answer)
    except urllib.error.HTTPError:
        return None

def pytest_runtest_setup(item):
    url = item.config.getoption("registry_url")
    while subjects := _ask("GET", f"{url}/subjects?deleted=true"):
        for subject in subjects:
            path = f"{url}/subjects/{urllib.parse.quote(subject, safe='')}"
            _ask("DELETE", path)
            _ask("DELETE", f"{path}?permanent=true")
"""


class Outcome(NamedTuple):
    #: Names of test functions of which a case failed or could not begin.
    failed: set[str]
    passed: int
    output: str


def folder_of(variable: str) -> Path:
    return Path(os.environ.get(variable, "/nonexistent"))


def python_of(command: str) -> str:
    """Return the interpreter of a suite: the first word of a command, ours if it is empty."""
    return command.split()[0] if command else sys.executable


def run_suite(
    python: str, folder: Path, arguments: Sequence[str], scratch: Path, environment: Mapping[str, str]
) -> Outcome:
    """Run pytest in a checkout; nothing is written there."""
    Path(scratch, "at_once.py").write_text(_PLUGIN)
    done = subprocess.run(
        [
            python,
            "-W",
            "ignore",
            "-m",
            "pytest",
            "-q",
            "-rfE",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            *arguments,
        ],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S+?::(\w+)", done.stdout, re.MULTILINE))
    counted = re.search(r"(\d+) passed", done.stdout)
    return Outcome(failed, int(counted[1]) if counted else 0, done.stdout[-5000:] + done.stderr[-2000:])
