"""Command lines and files that are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.moldau.mirror import command, maker

GOOD = """
clusters = us, eu
us.bootstrap.servers = 127.0.0.1:1
eu.bootstrap.servers = 127.0.0.1:1
us->eu.enabled = true
eu->us.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(GOOD)
    return path


def test_a_misspelled_setting_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GOOD + "us->eu.topcis = orders\n")
    assert maker.main([str(file), "--local"]) == 1
    assert "did you mean us->eu.topics?" in capsys.readouterr().err


def test_unknown_clusters_are_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert maker.kafka_main([str(file), "--local", "--clusters", "asia"]) == 1
    assert "--clusters names asia" in capsys.readouterr().err


def test_local_excludes_a_master(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert maker.main([str(file), "--local", "--master", "local[2]"]) == 1
    assert "can't be used with" in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert maker.main([str(tmp_path / "none"), "--local"]) == 1
    assert "Unable to read file" in capsys.readouterr().err


def test_moving_groups_needs_one_flow(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["failover", str(file)]) == 1
    assert "Choose a flow with --flow: us->eu, eu->us" in capsys.readouterr().err
