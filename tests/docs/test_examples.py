"""The examples run with the commands in their docstrings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from moldau.testing import Cluster
from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster() as node:
        yield node.bootstrap_servers


def run(bootstrap: str, name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), "--bootstrap-server", bootstrap, *arguments],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_stock_prices(bootstrap: str) -> None:
    output = run(bootstrap, "stock_prices.py", "--records", "500")
    assert "'MOLD': 100" in output
    assert "failed: 0" in output and "record-send-total: 500.0" in output
    arrived = output.split("arrived by partition: {")[1].split("}")[0]
    assert dict(each.split(": ") for each in arrived.split(", "))["3"] == "100"


def test_consumer_groups(bootstrap: str) -> None:
    output = run(bootstrap, "consumer_groups.py")
    assert "  consumer 1: [0, 1, 2, 3]\n2 in the group:" in output
    fifth = output.split("5 in the group:\n")[1].split("the first one has left")[0]
    assert fifth.count("idle") == 1
    for way in ("automatically", "synchronously: ", "asynchronously: ", "combined", "chosen", "on revoke"):
        assert f"  {way}" in output
