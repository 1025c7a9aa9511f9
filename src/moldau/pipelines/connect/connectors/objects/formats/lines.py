r"""Lines of files, which end with \n or \r\n, the last one also without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moldau.pipelines.connect.data.errors import ConnectError

_READ_BYTES: Final = 1 << 20
_MAX_LINE: Final = 64 << 20


def lines_of(file: Any) -> Iterator[bytes]:
    """Return the lines of an open file, without reading it as a whole."""
    rest = b""
    while block := file.read(_READ_BYTES):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > _MAX_LINE:
            raise ConnectError(f"A line is longer than {_MAX_LINE} bytes.")
    if rest:
        yield rest
