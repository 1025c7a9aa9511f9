"""Numbers, texts and times of requests, checked before they reach Kafka's clients.

librdkafka's binding raises, cuts off, or ends the process for values that the types of C cannot hold.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeGuard

INT16: Final = (1 << 15) - 1
INT32: Final = (1 << 31) - 1
INT64: Final = (1 << 63) - 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
#: More digits than any number of Kafka has; Python refuses to convert thousands of them.
_MAX_DIGITS: Final = 20


def is_number(value: Any, most: int) -> TypeGuard[int]:
    """Return whether a JSON value is an integer from 0 to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def natural(text: str, most: int) -> int | None:
    """Return the number that decimal digits stand for; None for other text, or a number over `most`."""
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        return None
    number = int(text)
    return number if number <= most else None


def quoted_number(value: Any, most: int) -> int:
    """Return a number of a JSON body, which may be in quotes; `ValueError` for anything else."""
    found = natural(value.strip(), most) if isinstance(value, str) else value
    if not is_number(found, most):
        raise ValueError
    return found


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is text that a C string in UTF-8 can hold.

    Half of a surrogate pair, which JSON can escape, has no form in UTF-8; a null character ends the string.
    """
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def milliseconds(text: str) -> int:
    """Return a time in ISO 8601 as milliseconds since 1970, in UTC unless it says otherwise; `ValueError`."""
    time = datetime.fromisoformat(text)
    return ((time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
