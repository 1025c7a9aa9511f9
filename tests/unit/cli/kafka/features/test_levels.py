"""Feature levels of releases, and their dependencies."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.features import command


def test_version_mapping_lists_the_levels_of_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["version-mapping", "--release-version", "4.0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert command.main(["version-mapping"]) == 0
    assert capsys.readouterr().out.startswith("metadata.version=30 (4.3-IV0)\n")


def test_feature_dependencies(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("metadata.version=25", "eligible.leader.replicas.version=1", "group.version=1")
    argv = [word for level in wanted for word in ("--feature", level)]
    assert command.main(["feature-dependencies", *argv]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0-IV3) has no dependencies.",
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "group.version=1 has no dependencies.",
    ]
