"""Splits a stream of bytes into the JSON values it consists of, as they arrive.

Values follow each other with or without white space between them. Each byte is looked at once, whatever the
size of the pieces, so a client cannot make the proxy parse the same bytes again and again.
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
        #: How far the bytes are scanned, and the state there.
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def feed(self, data: bytes) -> Iterator[Any]:
        """Iterate over the values that are complete now, parsed; an `ApiError` for one that is not JSON.

        `ApiError` 400 is raised if a value is too large or not an object: nothing can be found after it.
        """
        self._bytes += data
        while True:
            if (line := self._line()) is not None:
                yield line
                continue
            end = self._scan()
            if end is None:
                break
            value = bytes(self._bytes[:end])
            del self._bytes[:end]
            self._scanned = 0
            try:
                yield parse(value)
            except ApiError as error:
                yield error
        if len(self._bytes) > self._limit:
            raise bad_request(f"A record is larger than {self._limit} bytes.")

    def _line(self) -> Any:
        """Return the value of a whole line, which most clients send; None if a line is something else."""
        if self._depth or self._scanned:
            return None
        end = self._bytes.find(b"\n")
        if end < 0:
            return None
        try:
            value = load(self._bytes[:end])
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        del self._bytes[: end + 1]
        return value

    def finish(self) -> None:
        """Check that nothing is left; `ApiError` 400 if the last value is not complete."""
        if self._bytes.strip(_SPACE):
            raise bad_request("Error processing message: the JSON ends within a value.")

    def _scan(self) -> int | None:
        """Return the end of the first value; None if it is not complete."""
        if self._depth == 0 and not self._begin():
            return None
        position, size = self._scanned, len(self._bytes)
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
        found = _NOT_SPACE.search(self._bytes)
        if found is None:
            self._bytes.clear()
            return False
        start = found.start()
        if start:
            del found
            del self._bytes[:start]
        if self._bytes[0] != ord("{"):
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
