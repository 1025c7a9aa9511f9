"""The link between a task's loop and the worker that started it.

`Control` is what the loop sees. The worker's commands arrive in another thread; the loop reads them between
two steps and while it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

from moldau.pipelines.connect.storage.types import Record


class Event(Enum):
    """What a task reports to the worker."""

    RUNNING = "running"
    PAUSED = "paused"
    #: It waits for a target that is away; the detail is the reason.
    RETRYING = "retrying"
    FAILED = "failed"
    STOPPED = "stopped"
    TOPIC = "topic"
    #: Counts of records, as JSON.
    METRICS = "metrics"


class Link(Protocol):
    """Sends reports and questions of a task to the worker."""

    def report(self, event: Event, detail: str | None = None) -> None: ...

    def offsets(self, partitions: Sequence[Any]) -> list[dict[str, Any] | None]:
        """Return the stored offsets of source partitions."""
        ...

    def store_offsets(self, records: Sequence[Record]) -> None:
        """Store offsets, and return when they are stored."""
        ...


class Control:
    """The commands of the worker, and the link to it."""

    def __init__(self, link: Link, *, paused: bool = False) -> None:
        self.link = link
        self._changed = threading.Condition()
        self._stopping = False
        self._cancelled = False
        self._paused = paused
        self._topics: set[str] = set()
        #: Why the task waits, as the status shows it.
        self._retrying: str | None = None

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def cancelled(self) -> bool:
        """Whether the task did not stop in time: it may have a successor, and stores nothing any more."""
        return self._cancelled

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """Take from a task that is to stop the right to write records and offsets."""
        self._cancelled = True
        self.stop()

    def pause(self, paused: bool) -> None:
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait while the task has to run; return whether it has to stop or to pause."""
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping or self._paused, seconds)

    def wait_for(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until a command makes the condition true."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def report_retry(self, error: BaseException) -> None:
        """Show in the status why the task waits, once for each reason."""
        reason = f"{type(error).__name__}: {error}"
        if reason != self._retrying:
            self._retrying = reason
            self.link.report(Event.RETRYING, reason)

    def report_success(self) -> None:
        """Remove the reason from the status."""
        if self._retrying is not None:
            self._retrying = None
            self.link.report(Event.PAUSED if self._paused else Event.RUNNING)

    def used_topic(self, topic: str) -> None:
        """Report a topic once."""
        if topic not in self._topics:
            self._topics.add(topic)
            self.link.report(Event.TOPIC, topic)
