"""Sessions: a record joins those it is within the gap of, which makes one of them. What a session was
before goes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.streams.dsl.windows import SessionWindows
from moldau.pipelines.streams.tasks.aggregation import LONG, Closing, Functions
from moldau.pipelines.streams.tasks.task import Out, Row


@dataclass(frozen=True, slots=True)
class _Session:
    start: int
    end: int
    value: bytes | None


class SessionAggregation(Closing):
    """All open sessions of a key are one piece of state."""

    def __init__(self, functions: Functions, windows: SessionWindows, final: bool) -> None:
        super().__init__(functions, final)
        self._gap_ms = windows.gap_ms
        self.grace_ms = windows.gap_ms + windows.grace_ms

    def is_closed(self, end: int) -> bool:
        """A session has its last record, so it is open one moment longer."""
        return end < self.stream_time - self.grace_ms

    def windowed(self, key: bytes, row: Row) -> None:
        functions, object_key = self.functions, self.functions.key(key)
        sessions = self._sessions(key)
        near = [each for each in sessions if self._is_near(each, row.timestamp)]
        start = min([row.timestamp, *(each.start for each in near)])
        end = max([row.timestamp, *(each.end for each in near)])
        if self.is_closed(end):
            self.is_late = True
            return
        so_far: Any = functions.first()
        for each in near:
            so_far = functions.merge(object_key, so_far, functions.stored(each.value))
            self.update(Out(_place(key, each), None, each.end, row.headers))
        value = functions.result(functions.add(object_key, row, so_far))
        session = _Session(start, end, value)
        # An aggregate that is nothing deletes its session.
        kept = [] if value is None else [session]
        self._keep(key, [*(each for each in sessions if each not in near), *kept])
        self.watch(end, key)
        self.update(Out(_place(key, session), value, end, row.headers))

    def _is_near(self, session: _Session, timestamp: int) -> bool:
        return session.start - self._gap_ms <= timestamp <= session.end + self._gap_ms

    def closed(self, place: bytes, end: int) -> None:
        """`place` is a key here: its sessions that end so are over; a longer one comes again."""
        open_ones = []
        for session in self._sessions(place):
            if session.end != end:
                open_ones.append(session)
            elif self.final and session.value is not None:
                super(Closing, self).update(Out(_place(place, session), session.value, session.end))
        self._keep(place, open_ones)

    def _sessions(self, key: bytes) -> list[_Session]:
        stored = self.state["rows"].get(key)
        return [] if stored is None else pickle.loads(stored)

    def _keep(self, key: bytes, sessions: list[_Session]) -> None:
        if sessions:
            in_order = sorted(sessions, key=lambda each: (each.end, each.start))
            self.state["rows"].put(key, pickle.dumps(in_order))
        else:
            self.state["rows"].delete(key)


def _place(key: bytes, session: _Session) -> bytes:
    return key + LONG.pack(session.end) + LONG.pack(session.start)
