"""Machine code is kept, found again by whoever has the same source, and loaded without Numba."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from moldau.pipelines.arrow import decode_kernel, encode_kernel, machine_code, scan_kernel, slots_kernel
from moldau.pipelines.arrow.machine_code import MachineCode

USE = """
import sys
from moldau.pipelines.arrow import decode, encode
print("numba" in sys.modules)
"""

KERNEL = """
from moldau.pipelines.arrow.kernels import LONGS, NUMBER, compiled, inlined

FACTOR = {factor}

@inlined
def _times(number):
    return number * FACTOR

def _sum(numbers, count):
    total = 0
    for i in range(count):
        total += _times(numbers[i])
    return total

total = compiled(_sum, LONGS, NUMBER)
"""

SUM = """
import array, sys
import kernel_of_a_test
numbers = array.array("q", [1, 2, 3])
print(kernel_of_a_test.total(numbers.buffer_info()[0], 3), "numba" in sys.modules)
"""


def python(source: str, folder: Path, **environment: str) -> list[str]:
    command = [sys.executable, "-c", textwrap.dedent(source)]
    run = subprocess.run(
        command, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_later_processes_do_without_numba(tmp_path: Path) -> None:
    kernels = (scan_kernel.scan_batches, decode_kernel.decode_records, decode_kernel.decode_headers)
    assert all((*kernels, slots_kernel.choose_slots, encode_kernel.encode_rows))
    assert python(USE, tmp_path) == ["False"]


def test_a_kernel_is_compiled_again_when_its_source_is_another(tmp_path: Path) -> None:
    # Python itself knows a changed file by its size, or by the second it was written in.
    for factor, known in ((2, "True"), (2, "False"), (50, "True"), (50, "False")):
        (tmp_path / "kernel_of_a_test.py").write_text(KERNEL.format(factor=factor))
        found = python(SUM, tmp_path, XDG_CACHE_HOME=str(tmp_path), **unwritable(tmp_path))
        assert found == [str(6 * factor), known]


def unwritable(folder: Path) -> dict[str, str]:
    """Has the folder beside the module look as if it could not be used."""
    (folder / "sitecustomize.py").write_text(
        textwrap.dedent(
            """
            from pathlib import Path
            from moldau.pipelines.arrow import machine_code
            machine_code.__file__ = "/proc/nowhere/all.py"
            """
        )
    )
    return {"PYTHONPATH": str(folder)}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine_code, "__file__", "/proc/nowhere/machine_code.py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(machine_code.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_without_a_home_the_temporary_folder_does(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = MachineCode("symbol", b"code\0with zeros")
    machine_code.keep("kernel", "key", code)
    assert machine_code.find("kernel", "key") == code
    assert machine_code.find("kernel", "another key") is None
    assert [path.parent for path in folders.rglob("*.kernel")] == [folders / "cache" / "moldau"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert machine_code.find("kernel", "key") is None
    machine_code.keep("kernel", "key", code)
    assert machine_code.find("kernel", "key") == code
    assert (folders / f"moldau-{os.getuid()}").stat().st_mode & 0o777 == 0o700


def test_what_is_not_whole_or_not_ours_is_not_found(folders: Path) -> None:
    machine_code.keep("kernel", "key", MachineCode("symbol", b"code"))
    (path,) = folders.rglob("*.kernel")
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40] + b"x" + whole[41:]):
        path.write_bytes(damaged)
        assert machine_code.find("kernel", "key") is None
    path.write_bytes(whole)
    assert machine_code.find("kernel", "key") is not None
    path.parent.chmod(0o777)
    assert machine_code.find("kernel", "key") is None
