"""Counts what a task does, and reports the counts to its worker every few seconds.

The names are those of Kafka Connect's JMX metrics (`source-task-metrics`, `sink-task-metrics`).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Final

from moldau.pipelines.connect.worker.task.control import Control, Event

POLLED: Final = "source_record_poll"
WRITTEN: Final = "source_record_write"
READ: Final = "sink_record_read"
SENT: Final = "sink_record_send"
#: The names of all counts that a task may report.
NAMES: Final = (POLLED, WRITTEN, READ, SENT)
_INTERVAL_S: Final = 5.0


class Meter:
    def __init__(self, control: Control) -> None:
        self._control = control
        self._counts: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()
        self._reported_at = 0.0

    def add(self, name: str, count: int) -> None:
        self._counts[name] += count

    def report(self) -> None:
        """Report the counts if they have changed and the last report is old enough."""
        now = time.monotonic()
        if now - self._reported_at < _INTERVAL_S or self._counts == self._reported:
            return
        self._reported_at, self._reported = now, self._counts.copy()
        self._control.link.report(Event.METRICS, json.dumps(self._counts))


def counts_of(detail: str) -> dict[str, int]:
    """Return the counts of a report."""
    found: dict[str, int] = json.loads(detail)
    return {name: found[name] for name in NAMES if name in found}
