"""Events as lines of JSON, for programs that watch a tool: a timestamp, a name, and what belongs to it."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def print_event(name: str, **details: Any) -> None:
    event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **details}
    sys.stdout.write(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n")
    sys.stdout.flush()
