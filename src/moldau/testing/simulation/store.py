"""A simulated object store: one service for all nodes, with faults of its own.

    service = StoreService(simulation.random("store"), simulation.loop)
    with service.registered("tier"):
        ...  # nodes with store_config("tier")

A segment is two objects, as in `ObjectStore`. Every call takes effect at once, unless a fault is drawn:

- `failing`: the call fails without an effect, as with a 503
- `lost`: the call takes effect, but its answer is lost
- `late`: the call fails, and takes effect seconds later, even if its process is gone by then
- `partial`: a copy ends after the first object, or between pieces of the second
- `damaged`: bytes that are read have a wrong bit, or some are missing
- `stale`: a list contains objects that are gone, and not those that are new
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import (
    RemoteSegmentMissing,
    RemoteStoreError,
    SegmentIndexes,
    SegmentSource,
    StoredSegment,
)

LOG, INDEXES = "log", "indexes"
_CLASS = f"{__name__}.SimulatedStore"
_SERVICES: dict[str, StoreService] = {}


class ObjectKey(NamedTuple):
    segment: StoredSegment
    kind: str


@dataclass(slots=True)
class StoreFaults:
    """The probability of each fault per call; `late_seconds` is the longest delay."""

    failing: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    partial: float = 0.0
    damaged: float = 0.0
    stale: float = 0.0
    late_seconds: float = 20.0


class StoreService:
    def __init__(self, random: Random, loop: asyncio.AbstractEventLoop) -> None:
        self.objects: dict[ObjectKey, bytes] = {}
        self.faults = StoreFaults()
        #: The last offset of every segment that was ever copied completely.
        self.ends: dict[Uuid, int] = {}
        self.counts: dict[str, int] = {}
        #: Called before and after every change, with what it is; if it returns True, the change ends there.
        self.on_step: Callable[[str], bool] = lambda what: False
        self._random = random
        self._loop = loop
        self._late = 0
        self._listed: list[ObjectKey] = []

    @contextmanager
    def registered(self, name: str) -> Iterator[None]:
        """Let nodes find the service under a name."""
        _SERVICES[name] = self
        try:
            yield
        finally:
            del _SERVICES[name]

    @property
    def is_quiet(self) -> bool:
        """Whether no call takes effect later."""
        return self._late == 0

    def is_complete(self, segment_id: Uuid) -> bool:
        kinds = {key.kind for key in self.objects if key.segment.id == segment_id}
        return kinds == {LOG, INDEXES}

    def draw(self, fault: str) -> bool:
        """Decide whether a call has a fault."""
        probability: float = getattr(self.faults, fault)
        drawn = self._random.random() < probability
        if drawn:
            self.counts[fault] = self.counts.get(fault, 0) + 1
        return drawn

    def change(self, what: str, effect: Callable[[], None]) -> None:
        """Do what changes objects, with the faults of such calls."""
        if self.draw("failing"):
            raise RemoteStoreError(f"503 Slow Down: {what}")
        if self.draw("late"):
            self._later(effect)
            raise RemoteStoreError(f"{what} timed out")
        if self.on_step(f"before {what}"):
            raise RemoteStoreError(f"{what} was interrupted")
        effect()
        if self.on_step(f"after {what}"):
            raise RemoteStoreError(f"the answer was interrupted: {what}")
        if self.draw("lost"):
            raise RemoteStoreError(f"the connection was reset: {what}")

    def _later(self, effect: Callable[[], None]) -> None:
        def happen() -> None:
            self._late -= 1
            effect()

        self._late += 1
        delay = self._random.random() * self.faults.late_seconds
        # Not in the context of the process: the service completes what it has received.
        self._loop.call_later(delay, happen, context=Context())

    def get(self, key: ObjectKey) -> bytes:
        if self.draw("failing"):
            raise RemoteStoreError("503 Slow Down")
        data = self.objects.get(key)
        if data is None:
            raise RemoteSegmentMissing(f"{key} does not exist")
        return data

    def spoiled(self, data: bytes) -> bytes:
        """Return what a damaged read returns."""
        if not data or not self.draw("damaged"):
            return data
        at = self._random.randrange(len(data))
        if self._random.random() < 0.3:
            return data[:at]
        return data[:at] + bytes([data[at] ^ 1 << self._random.randrange(8)]) + data[at + 1 :]

    def list(self) -> list[ObjectKey]:
        if self.draw("failing"):
            raise RemoteStoreError("503 Slow Down")
        if not self.draw("stale"):
            self._listed = sorted(self.objects)
        return self._listed


class SimulatedStore:
    """The plug-in; `bucket` is the name of the service."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        name = configs.get("bucket", "")
        if name not in _SERVICES:
            raise ValueError(f"there is no simulated store {name!r}")
        self._service = _SERVICES[name]

    def copy(self, segment: RemoteSegment, source: SegmentSource) -> None:
        service, stored = self._service, _stored(segment)
        self._put(ObjectKey(stored, INDEXES), source.indexes().pack())
        if service.draw("partial"):
            raise RemoteStoreError(f"the upload of {segment} was interrupted")
        self._put(ObjectKey(stored, LOG), b"".join(source.pieces()))
        service.ends[segment.id] = segment.end_offset

    def _put(self, key: ObjectKey, data: bytes) -> None:
        self._service.change(f"put {key.kind}", lambda: self._service.objects.update({key: data}))

    def read(self, segment: RemoteSegment, position: int, size: int) -> bytes:
        data = self._service.get(ObjectKey(_stored(segment), LOG))
        return self._service.spoiled(data[position : position + size])

    def read_indexes(self, segment: RemoteSegment) -> SegmentIndexes:
        data = self._service.get(ObjectKey(_stored(segment), INDEXES))
        return SegmentIndexes.unpack(self._service.spoiled(data))

    def delete(self, segment: RemoteSegment) -> None:
        for kind in (LOG, INDEXES):
            key = ObjectKey(_stored(segment), kind)
            self._service.change(f"delete {kind}", lambda key=key: self._remove(key))  # type: ignore[misc]

    def _remove(self, key: ObjectKey) -> None:
        self._service.objects.pop(key, None)

    def segments(self) -> list[StoredSegment]:
        return list(dict.fromkeys(key.segment for key in self._service.list()))

    def close(self) -> None:
        return None


def store_config(name: str) -> dict[str, str]:
    """Return the configs of nodes that use the service."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _CLASS,
        "rsm.config.bucket": name,
    }


def _stored(segment: RemoteSegment) -> StoredSegment:
    return StoredSegment(segment.partition_id, segment.id, segment.start_offset)
