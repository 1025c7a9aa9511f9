"""Files opened, used and closed by several threads at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.storage.disk.disk import PosixDisk
from moldau.storage.disk.open_files import OpenFiles


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_forgetting_a_directory_while_its_files_are_used(tmp_path: Path) -> None:
    files = OpenFiles(PosixDisk())
    paths = [str(tmp_path / f"{number}.log") for number in range(300)]
    for path in paths:
        files.get(path, create=True)
    done = threading.Event()

    def use() -> None:
        while not done.is_set():
            for path in paths:
                files.get(path)

    user = threading.Thread(target=use)
    user.start()
    try:
        for _ in range(500):
            files.forget_directory(str(tmp_path / "another"))
        assert len(files) == len(paths)
    finally:
        done.set()
        user.join()
    files.forget_directory(str(tmp_path))
    assert len(files) == 0
