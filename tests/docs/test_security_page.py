"""The commands of docs/SECURITY.md run, in their order, on a secured cluster of three nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.cluster_files import Files, free_ports, with_ports
from tests.docs.markdown import blocks, section
from tests.docs.shell import Shell
from tests.harness.waiting import eventually

PAGE = "docs/SECURITY.md"


class Cluster:
    """The example's three nodes, and a shell in its folder."""

    def __init__(self, folder: Path) -> None:
        self.port = free_ports()
        self.files = Files(folder / "secured-cluster", self.port)
        self._shell = Shell(self.files.folder, self.port)

    def run(self, text: str) -> list[str]:
        """Run the lines of a code block and return the output of each."""
        lines = with_ports(text, self.port).replace("--entity-name 1 ", f"--entity-name {self.files.ids[0]} ")
        assignments = [line for line in lines.splitlines() if line.startswith("ID=")]
        return [
            self._shell.run("\n".join([*assignments, line]))
            for line in lines.splitlines()
            if not line.startswith(("ID=", "cd "))
        ]

    def section(self, heading: str) -> list[list[str]]:
        return [self.run(block.text) for block in blocks(section(PAGE, heading), "sh")]

    def stop(self) -> None:
        for node_id in self.files.ids:
            self._shell.run(f"kafka-server-stop --node-id {node_id} || true")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def test_secured_cluster_serves_its_users(cluster: Cluster) -> None:
    created, started, granted, used = blocks(section(PAGE, "A secured cluster"), "sh")
    assert "key and certificate for localhost, 127.0.0.1" in cluster.run(created.text)[0]
    cluster.run(started.text)
    cluster.run(granted.text)
    *_, produced, consumed, listed = cluster.run(used.text)
    assert "ERROR" not in produced
    assert sorted(consumed.split()) == ["book", "lamp"]
    assert listed.split() == ["orders"], "salaries may not be described by alice"

    renewed, _ = cluster.section("Rotate certificates")
    assert "key and certificate for localhost" in renewed[0]
    new_password, described = cluster.section("Rotate users and passwords")[0]
    assert "Completed updating config for user alice" in new_password
    assert "SCRAM-SHA-512=iterations=4096" in described
    listing = used.text.splitlines()[-1]
    eventually(
        lambda: "orders" not in cluster.run(f"{listing} 2>&1 || true")[0], what="the old password is refused"
    )
