"""The default folder for the checkpoints of an engine's persistent queries.

Free of PySpark: `moldau sql` needs the directory while another thread imports PySpark.
"""

from __future__ import annotations

import os
from pathlib import Path


def default_state_dir() -> Path:
    """Return the default directory for checkpoints."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "moldau" / "sql"
