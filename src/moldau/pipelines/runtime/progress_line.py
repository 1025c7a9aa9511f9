"""The progress line of pipelines: rewritten in place on a terminal, otherwise printed as new lines."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TextIO

from moldau.pipelines.runtime.state import Status

#: Without a terminal, the interval between lines unless a state changes.
PLAIN_INTERVAL_S = 10.0


class ProgressLine:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._written_at = float("-inf")
        self._states: dict[str, str] = {}
        self._shown = ""

    def begin(self, statuses: Sequence[Status]) -> None:
        """Announce the start on a terminal: Spark takes seconds to start."""
        if self._terminal:
            names = ", ".join(status.name for status in statuses)
            self._rewrite(f"Starting Spark for {names} ...")

    def show(self, statuses: Sequence[Status], now: float) -> None:
        """Print the statuses if they are due or have changed."""
        states = {status.name: status.state for status in statuses}
        changed = [status for status in statuses if self._states.get(status.name) != status.state]
        self._states = states
        if self._terminal:
            self._rewrite(" | ".join(describe(status) for status in statuses))
            return
        due = now - self._written_at >= PLAIN_INTERVAL_S
        for status in statuses if due else changed:
            self._out.write(describe(status) + "\n")
        if due:
            self._written_at = now
        self._out.flush()

    def close(self) -> None:
        """Keep the current line and begin a new one."""
        if self._terminal and self._shown:
            self._out.write("\n")
            self._out.flush()
            self._shown = ""

    def end(self, statuses: Sequence[Status]) -> None:
        """Begin a new line and print the full errors of failed pipelines, which the terminal may have cut
        off."""
        self.close()
        if self._terminal:
            self._out.writelines(f"{describe(each)}\n" for each in statuses if each.state == "failed")
            self._out.flush()

    def _rewrite(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        if line != self._shown:
            self._out.write(f"\r\x1b[K{line}")
            self._out.flush()
            self._shown = line


def describe(status: Status) -> str:
    """`orders running 12,345 rows/s, lag 3, batch 133 ms, 2 dead letters`."""
    parts = []
    if status.queries:
        rate = sum(each["rows_per_second"] for each in status.queries)
        rows = max(each["rows"] for each in status.queries)
        lag = max(each["total_lag"] for each in status.queries)
        parts += [f"{rate:,.0f} rows/s", f"{rows:,} rows", f"lag {lag:,}"]
        parts.append(f"batch {max(each['batch_ms'] for each in status.queries)} ms")
    if status.dead_letters:
        parts.append(_counted(status.dead_letters, "dead letter"))
    if status.restarts:
        parts.append(_counted(status.restarts, "restart"))
    if status.error is not None and status.state in ("waiting", "failed"):
        parts.append(status.error)
    return f"{status.name} {status.state}" + (": " if parts else "") + ", ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
