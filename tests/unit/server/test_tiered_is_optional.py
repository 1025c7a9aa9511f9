"""A broker without tiered storage imports nothing of it."""

from __future__ import annotations

import subprocess
import sys


def test_tiered_storage_is_imported_only_if_enabled() -> None:
    program = (
        "import sys, moldau.server.run, moldau.server.node;"
        "print([name for name in sys.modules if name.startswith(('moldau.tiered', 'moldau.server.tiered'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
