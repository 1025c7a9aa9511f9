"""The headers of consumed messages, whatever the encoding of their names.

Kafka demands UTF-8 names, but brokers store what producers send. For another name the binding returns a tuple
with a hole, and sets an exception as well. Touching the hole ends the process. Whether the exception is seen
depends on the call: CPython checks the results of general calls, but not of a `message.headers()` that it has
specialised.
"""

from __future__ import annotations

import gc
from operator import methodcaller
from typing import Any, Final

#: A general call, which raises `SystemError` if the binding set an exception.
_headers: Final = methodcaller("headers")
#: The replacement that Java's consumer shows for bytes that are not UTF-8.
_REPLACEMENT: Final = "\ufffd"


def headers_of(message: Any) -> list[tuple[str, bytes | None]]:
    """Return the headers of a message; a name that is not UTF-8 is replaced as a whole."""
    try:
        return _headers(message) or []
    except SystemError:
        headers = [_repaired(pair) for pair in _headers(message)]
        message.set_headers(headers)
        return headers


def _repaired(pair: tuple[str, bytes | None]) -> tuple[str, bytes | None]:
    """Return a header without a hole. The garbage collector is the only reader of tuples that skips holes."""
    name, value = _REPLACEMENT, None
    for part in gc.get_referents(pair):
        if isinstance(part, str):
            name = part
        elif part is not None:
            value = part
    return name, value
