"""The programs of docs/TRACING.md run, and print what the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from moldau.config.broker.definitions.observability import CONFIGS
from moldau.local.ports import ReservedPorts
from moldau.testing import Cluster
from tests.docs.markdown import blocks, section
from tests.docs.shell import ADDRESS
from tests.harness.waiting import eventually

PAGE = "docs/TRACING.md"
COLLECTOR = "4318"


def test_the_tutorial(tmp_path: Path) -> None:
    collector, shop = (block.text for block in blocks(section(PAGE, "Try it"), "python"))
    [printed] = (block.text for block in blocks(section(PAGE, "Try it"), "text"))
    ports = ReservedPorts("127.0.0.1")
    port = str(ports.choose())
    ports.release()
    (tmp_path / "collector.py").write_text(collector.replace(COLLECTOR, port))
    output = tmp_path / "output"
    with (
        output.open("w") as stdout,
        subprocess.Popen([sys.executable, str(tmp_path / "collector.py")], stdout=stdout) as process,
    ):
        try:
            with Cluster(config={"traces.otlp.endpoint": f"http://localhost:{port}/v1/traces"}) as node:
                program = shop.replace(COLLECTOR, port).replace(ADDRESS, node.bootstrap_servers)
                (tmp_path / "shop.py").write_text(program)
                subprocess.run([sys.executable, str(tmp_path / "shop.py")], check=True, timeout=60)
                eventually(
                    lambda: len(output.read_text().splitlines()) >= len(printed.splitlines()), timeout=30
                )
        finally:
            process.kill()
    found = [line.split(" ", 1) for line in output.read_text().splitlines()]
    assert len({trace for trace, _ in found}) == 1
    expected = [line.split(" ", 1)[1] for line in printed.splitlines()]
    assert sorted(name for _, name in found) == sorted(expected)


def test_every_property_is_listed() -> None:
    text = section(PAGE, "Brokers")
    names = [key.name for key in CONFIGS if key.name.startswith("traces.")]
    assert names
    assert [name for name in names if f"`{name}`" not in text] == []
