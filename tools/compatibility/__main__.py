"""Print docs/COMPATIBILITY.md."""

from __future__ import annotations

import sys

from tools.compatibility.page import document

sys.stdout.write(document())
