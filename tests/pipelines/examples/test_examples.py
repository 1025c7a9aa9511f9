"""The examples run with the command in their docstrings and print the expected results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "pipelines"

pytestmark = pytest.mark.timeout(700)


def run(name: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_example_without_java_explains_the_installation() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "word_count.py")],
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("JAVA_HOME is /nowhere, which is not a Java installation.\n")


def test_word_count() -> None:
    counts = dict(reversed(line.split()) for line in run("word_count.py").splitlines())
    assert counts["the"] == "4" and counts["log"] == "2" and counts["truth"] == "1"
    assert sum(map(int, counts.values())) == 19


def test_click_stream() -> None:
    visits = [json.loads(line) for line in run("click_stream.py").splitlines()]
    seen = [(v["user"], v["minutes"], v["pages"], v["first_page"], v["last_page"]) for v in visits]
    assert sorted(seen) == [
        ("ann", 10, 2, "/", "/paid"),
        ("ann", 20, 3, "/", "/cart"),
        ("bea", 0, 1, "/", "/"),
        ("bea", 15, 2, "/hats", "/cart"),
    ]


def test_moving_averages() -> None:
    lines = run("moving_averages.py").splitlines()
    assert len(lines) == 2 * 16, "windows of five minutes over twenty"
    means = [(line.split()[0], float(line.split()[3])) for line in lines]
    assert means[-1] == ("MOLD", 41.484)
    assert all(abs(mean - 17.5) <= 1 for stock, mean in means if stock == "ELBE")


def test_event_sourcing() -> None:
    printed = run("event_sourcing.py")
    assert "balances:                       {'alice': 75, 'carol': 10}" in printed
    assert "rebuilt from the log alone:     {'alice': 75, 'carol': 10}" in printed
    assert "after the third event:          {'alice': 70, 'bob': 50}" in printed


def test_log_aggregation() -> None:
    printed = run("log_aggregation.py")
    assert printed.count("100 lines") == 6
    assert "602 rows" in printed and "2 dead letters" in printed


def test_kpi_board() -> None:
    printed = run("kpi_board.py")
    rows = re.findall(r"│ (\w+) +│ \d\d:\d\d +│ +(\d+) │ +([\d.]+) │ +([\d.]+) │", printed)
    assert len(rows) == 6 and all(row[1] == "10" for row in rows)
    assert sum(float(row[2]) for row in rows) == sum(5.0 + number % 7 for number in range(60))


def test_order_processing() -> None:
    printed = run("order_processing")
    assert re.findall(r"^\w{12} (\w+) +([\w, ]*)$", printed, re.M) == [
        ("VALIDATED", ""),
        ("VALIDATED", ""),
        ("FAILED", "inventory"),
        ("FAILED", "details"),
        ("FAILED", "fraud"),
    ]
    assert "Validated orders of lamps: ['bob']" in printed
    assert printed.count("mail to") == 5 and "mail to carol@example.org" in printed
