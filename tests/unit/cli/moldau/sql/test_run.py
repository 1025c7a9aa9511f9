"""`moldau sql` before Spark has started."""

from __future__ import annotations

import subprocess
import sys


def test_shell_leaves_the_import_of_pyspark_to_the_thread_that_starts_spark() -> None:
    code = "import sys, moldau.cli.moldau.sql.run; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "moldau.cli.moldau.sql.run" in modules
    assert "pyspark" not in modules
