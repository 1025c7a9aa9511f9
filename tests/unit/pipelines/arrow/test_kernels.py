"""Numba caches the machine code of kernels, and recompiles a kernel when its module changes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from moldau.pipelines.arrow import avro_kernel, decode_kernel, encode_kernel
from moldau.pipelines.arrow.kernels import NUMBER, compiled, inlined

KERNELS = (
    decode_kernel.scan_batches,
    decode_kernel.decode_records,
    decode_kernel.decode_headers,
    encode_kernel.choose_slots,
    encode_kernel.encode_rows,
    avro_kernel.decode,
    avro_kernel.gather,
    avro_kernel.encode,
)

HITS = """
from moldau.pipelines.arrow import avro, decode, encode
from moldau.pipelines.arrow.kernels import cache_hits
print(cache_hits())
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
import array
import kernel_of_a_test
from moldau.pipelines.arrow.kernels import cache_hits
numbers = array.array("q", [1, 2, 3])
print(kernel_of_a_test.total(numbers.buffer_info()[0], 3), cache_hits())
"""


def python(source: str, folder: Path, **environment: str) -> list[str]:
    command = [sys.executable, "-c", textwrap.dedent(source)]
    run = subprocess.run(
        command, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_later_processes_load_all_kernels_from_the_cache(tmp_path: Path) -> None:
    """Fails with the first release of Numba whose cache does not work for our kernels."""
    assert python(HITS, tmp_path) == [str(len(KERNELS))]


def test_kernel_is_recompiled_when_its_module_changes(tmp_path: Path) -> None:
    # Numba, like Python, detects a change by size and modification time of the file.
    for factor, hits in ((2, "0"), (2, "1"), (50, "0"), (50, "1")):
        source, text = tmp_path / "kernel_of_a_test.py", KERNEL.format(factor=factor)
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        assert python(SUM, tmp_path) == [str(6 * factor), hits]


@pytest.mark.skipif(os.getuid() == 0, reason="root can write to every folder")
def test_read_only_installation_uses_the_cache_folder(tmp_path: Path) -> None:
    _check_read_only(tmp_path, KERNEL.format(factor=2))


def test_cache_folder_is_used_if_the_folder_of_the_module_is_not_writable(tmp_path: Path) -> None:
    """The same for root, with an `os.access` that reports a read-only folder."""
    read_only = "import os\nos.access = lambda path, mode: False\n"
    _check_read_only(tmp_path, read_only + KERNEL.format(factor=2))


def _check_read_only(folder: Path, kernel: str) -> None:
    package, cache = folder / "package", folder / "cache"
    package.mkdir()
    (package / "kernel_of_a_test.py").write_text(kernel)
    package.chmod(0o555)
    variables = {"MOLDAU_CACHE": str(cache), "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}"}
    for hits in ("0", "1"):
        assert python(SUM, folder, **variables) == ["12", hits]
    assert list((cache / "numba").rglob("*.nbi"))
    assert not list(package.rglob("*.nbi"))


def test_kernel_must_not_call_functions_of_other_modules() -> None:
    @inlined
    def helper(number: int) -> int:
        return number

    helper.py_func.__module__ = "another"  # type: ignore[attr-defined]

    def kernel(number: int) -> int:
        return helper_of_another_module(number)  # type: ignore[no-any-return,name-defined]  # noqa: F821

    kernel.__globals__["helper_of_another_module"] = helper
    with pytest.raises(TypeError, match=r"kernel .* calls helper_of_another_module of module another"):
        compiled(kernel, NUMBER)
