"""Cuts a stream of bytes into length-prefixed frames, in a buffer that is reused from frame to frame.

The transport reads straight into the free tail of the buffer; a complete frame is handed out as a view
of it, so nothing is copied on the way in. Invariants:

- a view is valid until the next call of `writable()`, unless `keep()` was called: then the buffer belongs
  to the holders of its views and a new buffer replaces it;
- there is no buffer before the first bytes arrive: a silent connection costs little;
- the buffer grows only for a frame that needs it and only up to the largest frame allowed.
"""

from __future__ import annotations

import struct

_SIZE = struct.Struct(">i")
_INITIAL_SIZE = 16 * 1024
_LARGE_SIZE = 256 * 1024
#: Larger buffers are released after the frame that needed them.
_KEEP_SIZE = 1024 * 1024
_MINIMUM_FREE = 4 * 1024
_EMPTY = memoryview(b"")


class FrameTooLarge(ValueError):
    """The peer announced a negative frame size, or one above the maximum."""


class FrameBuffer:
    __slots__ = ("_end", "_start", "_view", "max_frame")

    def __init__(self, max_frame: int) -> None:
        self.max_frame = max_frame
        self._view = _EMPTY
        self._start = 0
        self._end = 0

    @property
    def buffered(self) -> int:
        """Received bytes that are not returned as frames yet."""
        return self._end - self._start

    @property
    def size(self) -> int:
        return len(self._view)

    @property
    def full(self) -> bool:
        """Whether reading must pause until frames are taken."""
        return self._start == 0 and 0 < self._end == len(self._view)

    def writable(self) -> memoryview:
        """Return the memory for the next bytes; never empty unless `full`."""
        free = len(self._view) - self._end
        if free < _MINIMUM_FREE or (self._start == self._end and self._start):
            self._make_room()
        return self._view[self._end :]

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """Return the next complete frame without its size prefix; None if more bytes are needed."""
        available = self._end - self._start
        if available < 4:
            return None
        (size,) = _SIZE.unpack_from(self._view, self._start)
        if size < 0 or size > self.max_frame:
            raise FrameTooLarge(f"frame of {size} bytes announced, the maximum is {self.max_frame}")
        if available < size + 4:
            return None
        begin = self._start + 4
        self._start = begin + size
        return self._view[begin : begin + size]

    def keep(self) -> None:
        """Leave the buffer to the holders of its frames and continue in a new one."""
        self._move_to(len(self._view))

    def _make_room(self) -> None:
        needed = self._needed()
        if not self._view:
            self._move_to(_INITIAL_SIZE)
        elif needed > len(self._view):
            self._move_to(needed)
        elif self._start == self._end and len(self._view) > _KEEP_SIZE:
            self._move_to(_INITIAL_SIZE)
        elif self._start:
            rest = self._view[self._start : self._end]
            self._view[: len(rest)] = rest
            self._start, self._end = 0, len(rest)

    def _needed(self) -> int:
        """Return the buffer size for the incomplete frame, in steps: a false size allocates little."""
        if self._end - self._start < 4:
            return 0
        size: int = _SIZE.unpack_from(self._view, self._start)[0]
        whole = min(max(size, 0), self.max_frame) + 4
        if whole <= len(self._view):
            return 0
        if self._end - self._start < len(self._view) // 2 and len(self._view) >= _LARGE_SIZE:
            return 0
        return min(whole, max(_LARGE_SIZE, 4 * len(self._view)))

    def _move_to(self, size: int) -> None:
        rest = self._view[self._start : self._end]
        view = memoryview(bytearray(max(size, len(rest))))
        view[: len(rest)] = rest
        self._view, self._start, self._end = view, 0, len(rest)
