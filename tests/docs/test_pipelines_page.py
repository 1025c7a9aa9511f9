"""The Python and the commands of docs/PIPELINES.md run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.docs.markdown import ROOT, blocks, section
from tests.pipelines.runtime.topics import committed, create, orders, produce

PAGE = "docs/PIPELINES.md"
ADDRESS = "localhost:9092"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(420)]


def run(folder: Path, command: list[str]) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_python_of_the_page_runs(tmp_path: Path) -> None:
    code = [text for language, text in blocks((ROOT / PAGE).read_text()) if language == "python"]
    assert len(code) == 4
    with Cluster() as node:
        create(node.bootstrap_servers, 1, "things", "copied-things")
        script = "\n".join(code).replace(ADDRESS, node.bootstrap_servers)
        (tmp_path / "page.py").write_text(f"{script}\nprint(vases, copy_orders.name)\nspark.stop()\n")
        assert run(tmp_path, [sys.executable, "page.py"]) == "2 copy\n"
        assert len(committed(node.bootstrap_servers, "copied-things")) == 3


def test_commands_of_the_page_run(tmp_path: Path) -> None:
    part = section(PAGE, "Pipelines from files")
    (definition,) = blocks(part, "yaml")
    (commands,) = blocks(part, "console")
    (tmp_path / "large-orders.yaml").write_text(definition.text)
    with Cluster() as node:
        servers = node.bootstrap_servers
        create(servers, 1, "orders", "large-orders", "orders-dead")
        produce(servers, "orders", [*orders(0, 103), b"nonsense"])
        lines = commands.text.replace(ADDRESS, servers).splitlines()
        moldau = [sys.executable, "-m", "moldau.cli.main"]
        printed = [run(tmp_path, [*moldau, *line.split()[1:]]) for line in lines]
        assert "large-orders.yaml: large-orders is a pipeline" in printed[0]
        assert ["large-orders", "finished"] in [line.split()[:2] for line in printed[2].splitlines()]
        assert "large-orders finished" in printed[3]
        assert not (tmp_path / "data").exists(), "a broker does not accept other folders there"
        assert "2 dead letters" in printed[3]
        assert [value for _, value, _ in committed(servers, "large-orders")] == [
            b'{"id":101,"gross":151.5}',
            b'{"id":102,"gross":153.0}',
        ]
