"""Metadata from snapshots, segments and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka.metadata_shell.command import main
from moldau.metadata.records import encode_record
from moldau.quorum.batches import data_batch
from tests.unit.cli.kafka.metadata_shell.records import RECORDS
from tests.unit.metadata.builders import topic


def test_folder_is_loaded_like_a_node_loads_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (folder, folder / "__cluster_metadata-0"):
        assert main(["--directory", str(path), "ls", "/topics"]) == 0
        assert capsys.readouterr().out.split() == ["later", "orders", "other"]
    assert main(["-d", str(folder), "cat", "/image/provenance"]) == 0
    assert capsys.readouterr().out == "offset 101, epoch 2, time 1970-01-01T00:00:07Z[UTC]\n"


def test_snapshot_is_loaded_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snapshot,) = folder.rglob("*.checkpoint")
    assert main(["--snapshot", str(snapshot), "ls", "/topics"]) == 0
    assert capsys.readouterr().out.split() == ["orders", "other"]


def test_invalid_sources_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "00000000000000000000.log"
    damaged.write_bytes(data_batch([encode_record(RECORDS[0], 30)], 0, 1, 5)[:-1] + b"x")
    alone = tmp_path / "00000000000000000005.log"
    alone.write_bytes(data_batch([encode_record(topic(7, "a")[1], 30)], 5, 1, 5))
    (tmp_path / "empty").mkdir()
    for argv, message in (
        (["--snapshot", str(damaged), "ls"], "is damaged"),
        (["--snapshot", str(alone), "ls"], "cannot be read alone"),
        (["--snapshot", str(tmp_path / "nope"), "ls"], "No such file or directory"),
        (["--directory", str(tmp_path / "empty"), "ls"], "has neither a metadata log nor a snapshot"),
        (["--directory", str(tmp_path / "nope"), "ls"], "No such file or directory"),
        (["ls"], "one of the arguments --snapshot/-s --directory/-d --controllers/-c is required"),
    ):
        assert main(argv) == 1
        assert message in capsys.readouterr().err
