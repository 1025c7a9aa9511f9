"""Session windows: a record is added to the sessions that it is within the gap of, which are merged. The
merged sessions are deleted with tombstones."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.windows import SessionWindows
from moldau.pipelines.streams.tasks.aggregation import Functions, Updates
from moldau.pipelines.streams.tasks.state import StateMap
from moldau.pipelines.streams.tasks.task import Out, Row

if TYPE_CHECKING:
    from moldau.pipelines.streams.tasks.windowed_aggregation import WindowCloser

_LONG = Struct(">q")


@dataclass(frozen=True, slots=True)
class _Session:
    """An open session. Sessions are pickled into state, so this class must keep its name and fields."""

    start: int
    end: int
    value: bytes | None


class SessionState:
    """The open sessions of each key, stored as one entry and watched under the key."""

    def __init__(
        self,
        functions: Functions,
        windows: SessionWindows,
        rows: StateMap,
        closer: WindowCloser,
        updates: Updates,
    ) -> None:
        self._functions = functions
        self._gap_ms = windows.gap_ms
        self._rows = rows
        self._closer = closer
        self._updates = updates

    def add(self, key: bytes, row: Row) -> bool:
        functions, object_key = self._functions, self._functions.key(key)
        sessions = self._sessions(key)
        near = [each for each in sessions if self._is_near(each, row.timestamp)]
        start = min([row.timestamp, *(each.start for each in near)])
        end = max([row.timestamp, *(each.end for each in near)])
        if self._closer.is_closed(end):
            return True
        aggregate: Any = functions.initial()
        for each in near:
            aggregate = functions.merge(object_key, aggregate, functions.deserialize(each.value))
            self._updates.update(Out(_windowed_key(key, each), None, each.end, row.headers))
        value = functions.serialize(functions.add(object_key, row, aggregate))
        session = _Session(start, end, value)
        # An aggregate of None deletes its session.
        kept = [] if value is None else [session]
        self._store(key, [*(each for each in sessions if each not in near), *kept])
        self._closer.watch(end, key)
        self._updates.update(Out(_windowed_key(key, session), value, end, row.headers))
        return False

    def _is_near(self, session: _Session, timestamp: int) -> bool:
        return session.start - self._gap_ms <= timestamp <= session.end + self._gap_ms

    def close(self, watched: bytes, end: int) -> None:
        """Close the sessions of a key that end at `end`. A session that has grown is watched under its new
        end."""
        still_open = []
        for session in self._sessions(watched):
            if session.end != end:
                still_open.append(session)
            elif session.value is not None:
                self._updates.result(Out(_windowed_key(watched, session), session.value, session.end))
        self._store(watched, still_open)

    def _sessions(self, key: bytes) -> list[_Session]:
        stored = self._rows.get(key)
        return [] if stored is None else pickle.loads(stored)

    def _store(self, key: bytes, sessions: list[_Session]) -> None:
        if sessions:
            in_order = sorted(sessions, key=lambda each: (each.end, each.start))
            self._rows.put(key, pickle.dumps(in_order))
        else:
            self._rows.delete(key)


def _windowed_key(key: bytes, session: _Session) -> bytes:
    return key + _LONG.pack(session.end) + _LONG.pack(session.start)
