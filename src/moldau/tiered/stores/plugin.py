"""The boundary to the remote store, which may be a class of the operator.

Whatever it raises is a failed call: `RemoteStoreError` from here on. So a mistake in a store is reported and
repeated like an outage, instead of ending the task that made the call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from moldau.base.json_log import event
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import (
    RemoteStore,
    RemoteStoreError,
    SegmentIndexes,
    SegmentSource,
    StoredSegment,
)

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class StorePlugin:
    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self._name = type(store).__qualname__

    def copy(self, segment: RemoteSegment, source: SegmentSource) -> bytes | None:
        custom = self._call("copy", self.store.copy, segment, source)
        return None if custom is None else self._of_type("copy", custom, bytes)

    def read(self, segment: RemoteSegment, position: int, size: int) -> bytes:
        return self._of_type("read", self._call("read", self.store.read, segment, position, size), bytes)

    def read_indexes(self, segment: RemoteSegment) -> SegmentIndexes:
        found = self._call("read_indexes", self.store.read_indexes, segment)
        return self._of_type("read_indexes", found, SegmentIndexes)

    def delete(self, segment: RemoteSegment) -> None:
        self._call("delete", self.store.delete, segment)

    def segments(self) -> list[StoredSegment] | None:
        """Return what is in the store; None if it has no such method."""
        method = getattr(self.store, "segments", None)
        return None if method is None else self._call("segments", lambda: list(method()))

    def close(self) -> None:
        try:
            self._call("close", self.store.close)
        except RemoteStoreError as error:
            logger.warning(
                "the remote store could not be closed: %s", error, extra=event("tiered.store_not_closed")
            )

    def _call(self, name: str, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except RemoteStoreError:
            raise
        except Exception as error:
            # The only broad boundary of tiered storage: the code behind it is not ours.
            raise RemoteStoreError(f"{self._name}.{name} raised {type(error).__name__}: {error}") from error

    def _of_type(self, name: str, value: object, expected: type[R]) -> R:
        if not isinstance(value, expected):
            returned = type(value).__name__
            raise RemoteStoreError(f"{self._name}.{name} returned {returned} instead of {expected.__name__}")
        return value
