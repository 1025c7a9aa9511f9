"""There is a folder for what is made once, also for a user without a home."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from moldau.pipelines.spark.user_folders import cache_folder, is_ours


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"moldau-{os.getuid()}"


def test_the_variable_comes_first(tmp_path: Path) -> None:
    assert cache_folder({"MOLDAU_CACHE": str(tmp_path / "here"), "HOME": "/"}) == tmp_path / "here"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other systems have other folders")
def test_a_home_that_can_be_written_is_used(tmp_path: Path) -> None:
    assert cache_folder({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "moldau"
    assert cache_folder({"HOME": "/dev/null", "XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "moldau"


def test_without_a_home_a_temporary_folder_is_used(temporary: Path) -> None:
    assert cache_folder({"HOME": "/dev/null"}) == temporary
    assert temporary.stat().st_mode & 0o077 == 0


def test_a_temporary_folder_that_others_can_write_is_not_trusted(temporary: Path) -> None:
    temporary.mkdir()
    temporary.chmod(0o777)
    other = cache_folder({"HOME": "/dev/null"})
    assert other != temporary and other.parent == temporary.parent
    assert is_ours(other) and not is_ours(temporary)
