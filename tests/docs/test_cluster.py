"""The README's commands for clusters run."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.cluster_files import NODES, Files, free_ports, with_ports
from tests.docs.markdown import Block, blocks, section
from tests.docs.shell import Shell
from tests.harness.waiting import eventually

BLOCKS = blocks(section("README.md", "A cluster"))


def block(number: int, language: str) -> str:
    found: Block = BLOCKS[number]
    assert found.language == language
    return found.text


@pytest.fixture
def first_port() -> int:
    return free_ports()


def test_dev_cluster_survives_a_killed_node(tmp_path: Path, first_port: int) -> None:
    shell = Shell(tmp_path, first_port)
    cluster = shell.open(f"{block(0, 'sh').strip()} --port {first_port}")
    assert cluster.stdout is not None
    try:
        shown = with_ports(block(1, "text"), first_port)
        seen = "".join(cluster.stdout.readline() for _ in shown.splitlines())
        pids = re.findall(r"process (\d+)", seen)
        in_readme = dict(zip(pids, ("4711", "4712", "4713"), strict=True))
        comparable = re.sub(r"process (\d+)", lambda match: f"process {in_readme[match[1]]}", seen)
        assert comparable == shown.replace("/home/you/moldau", str(tmp_path))

        lines = with_ports(block(2, "sh"), first_port).replace("4712", pids[1]).splitlines()
        created, _, _, described, consumed = (shell.run(line) for line in lines)
        assert created == "Created topic my-failsafe-topic.\n"
        assert described.count("Leader: ") == 13
        assert sorted(consumed.splitlines()) == ["one", "three", "two"]
        assert "Node 2 has exited" in cluster.stdout.readline()

        again = shell.open(block(3, "sh").strip())
        assert again.stdout is not None
        try:
            eventually(lambda: everywhere(2, shell.run(lines[3])), what="node 2 has caught up")
        finally:
            again.send_signal(signal.SIGTERM)
            assert again.wait(30) == 0
            again.stdout.close()
    finally:
        cluster.send_signal(signal.SIGINT)
        assert cluster.wait(40) == 0
        cluster.stdout.close()


def everywhere(node_id: int, described: str) -> bool:
    """Return whether the node is in sync in every partition."""
    found = re.findall(r"Isr: (\S+)", described)
    return bool(found) and all(str(node_id) in each.split(",") for each in found)


@pytest.fixture
def files(tmp_path: Path, first_port: int) -> Iterator[Files]:
    shell, files = Shell(tmp_path, first_port), Files(tmp_path / "examples" / "cluster", first_port)
    yield files
    for node_id in files.ids:
        shell.run(f"kafka-server-stop --node-id {node_id} || true")


def test_cluster_of_three_properties_files(tmp_path: Path, first_port: int, files: Files) -> None:
    *lines, stop = block(4, "sh").splitlines()
    assert stop == "kafka-server-stop"
    shell = Shell(tmp_path, first_port)
    output = shell.run(with_ports("\n".join(lines), first_port))
    assert output.count("Formatting metadata directory") == 3
    voters = re.findall(r"CurrentVoters: .*", output)
    assert len(voters) == 1 and all(str(node_id) in voters[0] for node_id in files.ids)
    for node_id in files.ids:
        shell.run(f"{stop} --node-id {node_id}")
    logs = [tmp_path / "data" / f"server-{number}" for number in NODES]
    eventually(
        lambda: all((log / ".kafka_cleanshutdown").exists() for log in logs),
        what="all nodes to stop",
    )
