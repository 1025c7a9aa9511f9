"""Which of the nodes that run here are meant, told from their command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.local.running_nodes import RunningNode


@pytest.mark.parametrize("arguments", [(), ("--port", "9192"), ("--data=elsewhere",), ("--set",)])
def test_dev_node_matches_node_id_1(arguments: tuple[str, ...], tmp_path: Path) -> None:
    node = RunningNode(1, arguments, tmp_path, is_dev=True)
    assert node.matches("1", None)
    assert node.matches(None, "controller")
    assert not node.matches("2", None)


def test_node_matches_its_properties_file_and_overrides(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=7\nprocess.roles=broker\n")
    assert RunningNode(1, ("server.properties",), tmp_path, is_dev=False).matches("7", "broker")
    overridden = ("server.properties", "--override", "node.id=8")
    assert RunningNode(1, overridden, tmp_path, is_dev=False).matches("8", None)
