"""The cache folder, also for a user without a home."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from moldau.pipelines.spark.user_folders import cache_folder, is_private


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"moldau-{os.getuid()}"


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOLDAU_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/dev/null")


def test_moldau_cache_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other systems have other folders")
def test_writable_home_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "moldau"
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "moldau"


def test_temporary_folder_is_used_if_the_home_is_not_writable(temporary: Path) -> None:
    assert cache_folder() == temporary
    assert temporary.stat().st_mode & 0o077 == 0


def test_temporary_folder_that_others_can_write_is_not_trusted(temporary: Path) -> None:
    temporary.mkdir()
    temporary.chmod(0o777)
    other = cache_folder()
    assert other != temporary and other.parent == temporary.parent
    assert is_private(other) and not is_private(temporary)
