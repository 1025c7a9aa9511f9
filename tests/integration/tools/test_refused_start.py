"""A node that must not start reports the reason in one sentence."""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path

import pytest

from moldau.testing import Cluster, NodeFailed
from tests.harness.nodes.operator import OperatorNode


def refusal(**arguments: object) -> str:
    """Return the message of a node that does not start."""
    with pytest.raises(NodeFailed) as refused, Cluster(**arguments):  # type: ignore[arg-type]
        pass
    output = str(refused.value)
    assert "Traceback" not in output
    assert "exited before it was ready" not in output, "it must say why"
    return output


def test_log_directory_of_a_running_node_is_locked(tmp_path: Path) -> None:
    with Cluster(config={"log.dirs": str(tmp_path / "logs")}) as first:
        output = refusal(config={"log.dirs": str(tmp_path / "logs")})
        assert str(tmp_path / "logs") in output
        assert re.search(r"lock|another|in use", output, re.IGNORECASE)
        assert first.running


def test_unformatted_log_directory_is_rejected(tmp_path: Path) -> None:
    node = OperatorNode(tmp_path)
    node.launch()
    assert node.wait() != 0
    assert "Traceback" not in node.printed()
    assert str(tmp_path / "logs") in node.printed()
    assert "kafka-storage" in node.printed()
    assert not (tmp_path / "logs" / "__cluster_metadata-0").exists()


def test_log_directories_of_different_clusters_are_rejected(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Cluster(config={"log.dirs": str(tmp_path / name)}):
            pass
    both = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    output = refusal(config={"log.dirs": both})
    assert re.search(r"cluster", output, re.IGNORECASE)
    assert str(tmp_path / "two") in output or str(tmp_path / "one") in output


def test_log_directory_of_another_node_is_rejected(tmp_path: Path) -> None:
    with Cluster(config={"log.dirs": str(tmp_path / "logs")}):
        pass
    output = refusal(config={"log.dirs": str(tmp_path / "logs"), "node.id": 2})
    assert re.search(r"node.id", output)
    assert "2" in output
    assert str(tmp_path / "logs") in output


def test_damaged_meta_properties_is_rejected(tmp_path: Path) -> None:
    with Cluster(config={"log.dirs": str(tmp_path / "logs")}):
        pass
    (tmp_path / "logs" / "meta.properties").write_text("version=77\nnode.id=1\n")
    output = refusal(config={"log.dirs": str(tmp_path / "logs")})
    assert "meta.properties" in output


def test_missing_metadata_log_is_named(tmp_path: Path) -> None:
    with Cluster(config={"log.dirs": str(tmp_path / "logs")}):
        pass
    shutil.rmtree(tmp_path / "logs" / "__cluster_metadata-0")
    (tmp_path / "logs" / "bootstrap.checkpoint").unlink(missing_ok=True)
    # It could be a controller that joins an existing quorum, so it waits and logs the reason.
    output = refusal(config={"log.dirs": str(tmp_path / "logs")}, start_timeout=8)
    assert re.search(r"metadata|format", output, re.IGNORECASE)


def test_port_in_use_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        output = refusal(config={"listeners": listeners})
    assert str(port) in output
    assert re.search(r"in use|taken", output, re.IGNORECASE)


def test_log_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    output = refusal(config={"log.dirs": str(tmp_path / "file" / "logs")})
    assert str(tmp_path / "file") in output


@pytest.mark.parametrize(
    "config",
    [
        {"listeners": "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0"},
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
        },
        {"authorizer.class.name": "org.example.OwnAuthorizer"},
        {"remote.log.storage.system.enable": "true"},
        {"num.partitions": "0"},
        {"num.partitions": "many"},
        {"log.cleanup.policy": "shred"},
        {"compression.type": "rar"},
        {"process.roles": "janitor"},
        {"log.retention.hours": "0"},
        {"log.segment.bytes": "1"},
        {"message.max.bytes": "-1"},
        {"node.id": "-5"},
        {"listeners": "PLAINTEXT://127.0.0.1"},
        {"controller.listener.names": "NOBODY"},
        {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
    ],
    ids=lambda config: ",".join(f"{key}={value}"[:60] for key, value in config.items()),
)
def test_invalid_configs_are_named(config: dict[str, str]) -> None:
    output = refusal(config=config)
    assert any(key in output for key in config) or "listener.security.protocol.map" in output, output


def test_unknown_configs_do_not_prevent_the_start() -> None:
    with Cluster(config={"no.such.setting": "1", "zookeeper.connect": "localhost:2181"}) as node:
        assert node.running
        assert "no.such.setting" in node.log_file.read_text()
