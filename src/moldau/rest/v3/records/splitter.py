"""Splits a stream of bytes into the JSON values it consists of, as they arrive.

Values follow each other with or without white space between them. A byte is searched for the end of its line
once, parsed as part of a line once, and, if the line is not one value, scanned and parsed as part of a value
once, whatever the size of the pieces: the time is linear in the number of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from moldau.http.errors import ApiError
from moldau.rest.errors import bad_request
from moldau.rest.formats.plain import load
from moldau.rest.request import parse

_SPACE: Final = b" \t\r\n"
_NOT_SPACE: Final = re.compile(rb"[^ \t\r\n]")
_STRUCTURE: Final = re.compile(rb'["{}\[\]]')
_IN_STRING: Final = re.compile(rb'["\\]')


class JsonSplitter:
    """Holds the bytes of the value that is not complete yet, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = bytearray()
        #: Where the next value begins.
        self._start = 0
        #: Lines that begin before are known not to be one value, or not to end.
        self._tried = 0
        #: How far the value is scanned, and the state there.
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def feed(self, data: bytes) -> Iterator[Any]:
        """Iterate over the values that are complete now, parsed; an `ApiError` for one that is not JSON.

        `ApiError` 400 is raised if a value is too large or not an object: nothing can be found after it.
        """
        self._bytes += data
        while self._depth or self._begin():
            if (line := self._line()) is not None:
                yield line
                continue
            end = self._scan()
            if end is None:
                break
            value = bytes(self._bytes[self._start : end])
            self._start = end
            try:
                yield parse(value)
            except ApiError as error:
                yield error
        self._discard()
        if len(self._bytes) > self._limit:
            raise bad_request(f"A record is larger than {self._limit} bytes.")

    def _discard(self) -> None:
        """Drop the bytes of the values that were found."""
        del self._bytes[: self._start]
        self._tried = max(0, self._tried - self._start)
        self._scanned = max(0, self._scanned - self._start)
        self._start = 0

    def _line(self) -> Any:
        """Return the value of a whole line, which most clients send; None if a line is something else."""
        if self._depth or self._start < self._tried:
            return None
        end = self._bytes.find(b"\n", self._start)
        if end < 0:
            self._tried = len(self._bytes)
            return None
        self._tried = end
        try:
            value = load(self._bytes[self._start : end])
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        self._start = end + 1
        return value

    def finish(self) -> None:
        """Check that nothing is left; `ApiError` 400 if the last value is not complete."""
        if self._bytes.strip(_SPACE):
            raise bad_request("Error processing message: the JSON ends within a value.")

    def _scan(self) -> int | None:
        """Return the end of the first value; None if it is not complete."""
        position, size = self._scanned if self._depth else self._start, len(self._bytes)
        while position < size:
            pattern = _IN_STRING if self._in_string else _STRUCTURE
            found = pattern.search(self._bytes, position)
            if found is None:
                position = size
                break
            position = self._take(self._bytes[found.start()], found.start())
            if self._depth == 0:
                return position
        self._scanned = position
        return None

    def _begin(self) -> bool:
        """Move to the first byte of the next value; return whether there is one."""
        found = _NOT_SPACE.search(self._bytes, self._start)
        if found is None:
            self._start = len(self._bytes)
            return False
        self._start = found.start()
        if self._bytes[self._start] != ord("{"):
            raise bad_request("Error processing message: a record is not a JSON object.")
        return True

    def _take(self, byte: int, position: int) -> int:
        """Change the state by a byte, and return where to continue."""
        if self._in_string:
            if byte == ord("\\"):
                return position + 2
            self._in_string = False
        elif byte == ord('"'):
            self._in_string = True
        elif byte in b"{[":
            self._depth += 1
        else:
            self._depth -= 1
        return position + 1
