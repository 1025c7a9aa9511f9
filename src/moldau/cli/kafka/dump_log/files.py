"""The files that kafka-dump-log reads, and the inconsistencies that it finds in them."""

from __future__ import annotations

import mmap
import os

from moldau.cli.shared.tool import ToolError, warn


class SegmentFile:
    """A file of a segment, mapped into memory."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)

    @property
    def base_offset(self) -> int:
        digits = self.name.partition(".")[0]
        if not digits.isdecimal():
            raise ToolError(f"{self.path}: the file name of a segment must begin with its base offset")
        return int(digits)

    def sibling(self, suffix: str) -> SegmentFile:
        """Another file of the same segment."""
        return SegmentFile(os.path.join(os.path.dirname(self.path), self.name.partition(".")[0] + suffix))

    def view(self) -> memoryview:
        try:
            with open(self.path, "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return memoryview(b"")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise ToolError(f"{self.path}: {error.strerror}") from error


class Inconsistencies:
    """Inconsistencies, collected while files are read and printed at the end."""

    def __init__(self) -> None:
        self._index: dict[str, list[tuple[int, int]]] = {}
        self._time_index: dict[str, list[tuple[int, int]]] = {}
        self._out_of_order: dict[str, list[tuple[int, int]]] = {}
        self._not_found: dict[str, list[tuple[int, int]]] = {}
        self._gaps: dict[str, list[tuple[int, int]]] = {}
        self._last_offsets: dict[str, int] = {}

    def index_mismatch(self, path: str, indexed: int, found: int) -> None:
        self._index.setdefault(os.path.abspath(path), []).insert(0, (indexed, found))

    def timestamp_mismatch(self, path: str, indexed: int, found: int) -> None:
        self._time_index.setdefault(os.path.abspath(path), []).append((indexed, found))

    def timestamp_out_of_order(self, path: str, indexed: int, previous: int) -> None:
        self._out_of_order.setdefault(os.path.abspath(path), []).append((indexed, previous))

    def offset_not_found(self, path: str, indexed: int, found: int) -> None:
        self._not_found.setdefault(os.path.abspath(path), []).append((indexed, found))

    def saw_offset(self, path: str, offset: int) -> None:
        """Record a gap between an offset and the previous one."""
        last = self._last_offsets.get(path)
        if last is not None and offset != last + 1:
            self._gaps.setdefault(os.path.abspath(path), []).insert(0, (last, offset))
        self._last_offsets[path] = offset

    def report(self) -> None:
        for path, pairs in self._index.items():
            warn(f"Mismatches in :{path}")
            for indexed, found in pairs:
                warn(f"  Index offset: {indexed}, log offset: {found}")
        for path, pairs in self._time_index.items():
            warn(f"Found timestamp mismatch in :{path}")
            for indexed, found in pairs:
                warn(f"  Index timestamp: {indexed}, log timestamp: {found}")
        for path, pairs in self._out_of_order.items():
            warn(f"Found out of order timestamp in :{path}")
            for indexed, previous in pairs:
                warn(f"  Index timestamp: {indexed}, Previously indexed timestamp: {previous}")
        for pairs in self._not_found.values():
            warn("The following indexed offsets are not found in the log.")
            for indexed, found in pairs:
                warn(f"Indexed offset: {indexed}, found log offset: {found}")
        for path, pairs in self._gaps.items():
            warn(f"Non-consecutive offsets in {path}")
            for first, second in pairs:
                warn(f"  {first} is followed by {second}")
