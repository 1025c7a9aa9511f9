"""franz-go's registry client (sr): one program with many checks, against `moldau registry`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.registry.instances import running_registry
from tests.interop.go_programs import built

pytestmark = pytest.mark.interop

MODULE = Path(__file__).parents[1] / "go"
CHECKS = re.findall(r'\{"([a-z-]+)", \w+\},', (MODULE / "registry" / "main.go").read_text())


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, str]]:
    program = built("registry")
    with Cluster() as cluster, running_registry(cluster.bootstrap_servers) as registry:
        command = [str(program), registry.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    yield {name: verdict for verdict, name in (line.split(" ", 1) for line in done.stdout.splitlines())}


@pytest.mark.parametrize("check", CHECKS)
def test_franz_go(check: str, results: dict[str, str]) -> None:
    assert results.get(check) == "PASS", results
