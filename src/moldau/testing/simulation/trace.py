"""The events of a simulation as one hash: two runs are equal if their traces are.

The trace contains disk operations, network bytes and the clock. With `keep`, the lines are kept, so that
two runs can be compared line by line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable


class Trace:
    def __init__(self, *, keep: bool = False) -> None:
        self.lines: list[str] = []
        self.count = 0
        self._keep = keep
        self._hash = hashlib.sha256()
        self._time: Callable[[], float] = lambda: 0.0

    def use_time(self, time: Callable[[], float]) -> None:
        """Set the time that precedes the following lines."""
        self._time = time

    def note(self, *fields: object) -> None:
        line = f"{self._time():.9f} {' '.join(map(str, fields))}\n"
        self._hash.update(line.encode())
        self.count += 1
        if self._keep:
            self.lines.append(line)

    def digest(self) -> str:
        return self._hash.hexdigest()
