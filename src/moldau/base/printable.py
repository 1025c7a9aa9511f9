"""Text of clients in logs: one line, and not too long, so that no client can forge lines or fill a disk."""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 2_000
#: Control characters, and what some viewers take for the end of a line.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return the text with control characters escaped, cut after `max_length` characters."""
    if len(text) > max_length:
        text = f"{text[:max_length]}… ({len(text)} characters)"
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
